import type { Random } from '../../../../infra/ids.ts'
import { type DeliveryEnvelope, sealEnvelope } from '../../../../infra/wire/delivery-envelope.ts'
import type { ApprovedSignup } from './approval.ts'

/** The variables of a service, by what they are for. */
export function variableNames(serviceId: string) {
  const prefix = serviceId
    .toUpperCase()
    .replaceAll('-', '_')
    .replace(/^(?=\d)/, '_')
  return { apiKey: `${prefix}_API_KEY`, accountId: `${prefix}_ACCOUNT_ID` }
}

export interface Accounts {
  /** Sealed credentials of the signup's account, made the first time; `isNew` says which it was. */
  open(signup: ApprovedSignup): { isNew: boolean; envelope: DeliveryEnvelope }
}

/** Accounts of a sample service: in memory, one for each signup. */
export function createAccounts(random: Random): Accounts {
  const keys = new Map<string, string>()
  return {
    open({ gate_session_id, gate_account_id, service_id, delivery }) {
      const known = keys.get(gate_session_id)
      const key = known ?? `demo_${random(24).toString('base64url')}`
      keys.set(gate_session_id, key)
      const names = variableNames(service_id)
      const outputs = { [names.apiKey]: key, [names.accountId]: gate_account_id }
      return {
        isNew: known === undefined,
        envelope: sealEnvelope({ version: 1, outputs }, { delivery, random }),
      }
    },
  }
}
