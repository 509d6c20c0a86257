import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateDeps } from '../context.ts'
import { requireRegistered } from '../registry/registered.ts'
import { sessionStream } from '../sessions.ts'
import { isClaimCode } from './code.ts'
import { decideClaim, throwIfWrongCode } from './decide.ts'

/** Throws what `decideClaim` throws, or 403 for a wrong code. A wrong code counts as a failed attempt. */
export async function claimSignup(
  { decide, keyring, clock, publicUrl }: GateDeps,
  { id, service_id: serviceId }: GateSessionRow,
  code: string,
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
        endpointId: (await requireRegistered(tx, { serviceId, publicUrl })).definition
          .webhook_endpoint_id,
        isCorrectCode: isClaimCode(keyring, {
          gateSessionId: id,
          code,
          hash: session?.claim_code_hash ?? null,
        }),
      }
    },
    decide: (state) => decideClaim(state, { now }),
  })
  throwIfWrongCode(events, failures)
}
