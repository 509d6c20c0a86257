import type { Decide } from '../../../infra/event-store/decide.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import { serviceOf } from '../registry/registered.ts'
import { sessionStream } from '../sessions.ts'
import { isClaimCode } from './code.ts'
import { decideClaim, refuseWrongCode } from './decide.ts'

type ClaimDeps = Pick<GateContext, 'keyring' | 'clock' | 'publicUrl'> & { decide: Decide }

interface ToldCode {
  session: GateSessionRow
  code: string
}

/** ApiError as of `decideClaim`, and 403 for a wrong code, which is counted then. */
export async function tellClaimCode(
  { decide, keyring, clock, publicUrl }: ClaimDeps,
  { session: { id, service_id: serviceId }, code }: ToldCode,
): Promise<void> {
  const now = clock()
  let failures = 0
  const events = await decide({
    ...sessionStream(id),
    load: async (tx) => {
      const session = await findGateSession(tx, id)
      failures = session?.claim_failures ?? 0
      return {
        session,
        endpointId: (await serviceOf(tx, { serviceId, publicUrl })).definition.webhook_endpoint_id,
        isCode: isClaimCode(keyring, { gateSessionId: id, code, hash: session?.claim_code_hash ?? null }),
      }
    },
    decide: (state) => decideClaim(state, { now }),
  })
  refuseWrongCode(events, failures)
}
