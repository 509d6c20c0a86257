import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateDeps } from '../context.ts'
import { requireRegisteredService } from '../registry/registered-services.ts'
import { sessionStream } from '../sessions.ts'
import { isClaimCode } from './code.ts'
import { decideClaim, throwIfWrongCode } from './decide.ts'

/** Throws the errors of `decideClaim`, and 403 for a wrong code, which is recorded as a failed attempt. */
export async function claimSignup(
  { decide, keyring, clock, publicUrl }: GateDeps,
  { id, service_id: serviceId }: GateSessionRow,
  code: string,
): Promise<void> {
  const now = clock()
  let earlierFailures = 0
  const events = await decide({
    ...sessionStream(id),
    load: async (tx) => {
      const session = await findGateSession(tx, id)
      earlierFailures = session?.claim_failures ?? 0
      const { definition } = await requireRegisteredService(tx, { serviceId, publicUrl })
      return {
        session,
        endpointId: definition.webhook_endpoint_id,
        isCorrectCode: isClaimCode(keyring, {
          gateSessionId: id,
          code,
          hash: session?.claim_code_hash ?? null,
        }),
      }
    },
    decide: (state) => decideClaim(state, { now }),
  })
  throwIfWrongCode(events, earlierFailures)
}
