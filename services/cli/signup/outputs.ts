import type { DeliveryPayload } from '../../../infra/crypto/delivery-envelope.ts'
import {
  agentTokenEnvName,
  isCriticalEnvName,
  isEnvName,
  isGateManagedEnvName,
} from '../../../infra/gate/env-names.ts'
import type { Values } from './env-file.ts'

export interface Skipped {
  /** A variable's name as it was delivered. */
  name: string
  reason: string
}

export interface Outputs {
  values: Values
  /** What was delivered and is not written anywhere. */
  skipped: Skipped[]
}

export interface Delivered {
  serviceId: string
  /** What the service sealed. */
  integrator: DeliveryPayload
  /** What Gate sealed. */
  gate: DeliveryPayload
}

/** What of a delivery may become environment variables: nothing that could hand the machine or Gate's token over. */
export function acceptedOutputs({ serviceId, integrator, gate }: Delivered): Outputs {
  const judged = [
    ...judge(integrator, integratorProblem),
    ...judge(gate, (name) => (name === agentTokenEnvName(serviceId) ? undefined : 'not_of_gate')),
  ]
  return {
    values: new Map(judged.flatMap(({ name, value, reason }) => (reason ? [] : [[name, value]]))),
    skipped: judged.flatMap(({ name, reason }) => (reason ? [{ name, reason }] : [])),
  }
}

function judge({ outputs }: DeliveryPayload, problem: (name: string) => string | undefined) {
  return Object.entries(outputs).map(([name, value]) => ({ name, value, reason: problem(name) }))
}

function integratorProblem(name: string): string | undefined {
  if (!isEnvName(name) || name === '__proto__') return 'not_a_variable_name'
  if (isCriticalEnvName(name)) return 'process_critical'
  return isGateManagedEnvName(name) ? 'gate_managed' : undefined
}
