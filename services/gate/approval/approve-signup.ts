import { tokenHashes } from '../../../infra/crypto/tokens.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import { type GateSessionId, randomId } from '../../../infra/ids.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import { serviceOf } from '../registry/registered.ts'
import { findPage } from '../serving/pages.ts'
import { sessionStream } from '../streams.ts'
import type { Approvals } from './approvals.ts'
import type { Approving } from './approving.ts'
import { startApproval } from './start-approval.ts'

/** How long a request waits for the service's answer, in milliseconds; then the page asks again. */
const patienceMs = 4000

type StartDeps = Pick<GateContext, 'vault' | 'decide' | 'keyring' | 'clock' | 'publicUrl'>

/** Starts the approval. ApiError: see `startApproval`; 503 when the service cannot be read. */
export async function startSignup(
  { vault, decide, keyring, clock, publicUrl }: StartDeps,
  { session, token, proof, command }: Approving,
): Promise<void> {
  const { id, service_id: serviceId } = session
  // On disk before the approval is: all that is delivered will be sealed under it.
  await vault.make(id)
  const hashes = tokenHashes(keyring, token)
  const gateAccountId = randomId('gacct', command.random)
  const now = clock()
  await decide({
    ...sessionStream(id),
    load: async (tx) => ({
      session: await findGateSession(tx, id),
      page: await findPage(tx, id),
      // Not to know whom to ask must not end the signup: 503.
      endpointId: (await serviceOf(tx, { serviceId, publicUrl })).definition.webhook_endpoint_id,
    }),
    decide: (state) =>
      startApproval(state, {
        approveTokenHash: hashes[0],
        approveTokenHashes: hashes,
        proof,
        gateAccountId,
        now,
      }),
  })
}

/** What came of the approval, which has started; `asked` may be from before. ApiError: 409 while the service has not answered, or when the signup was rejected. */
export async function signupOutcome({ approvals }: GateContext, asked: GateSessionRow) {
  const { id } = asked
  const session = asked.status === 'pending' ? await outcomeSoon(approvals, id) : asked
  if (session?.status === 'approved')
    return { object: 'gate_session' as const, id, status: 'approved' as const }
  throw refusalOf(session)
}

/** Has the approval worked on, wherever its process may have gone. */
function outcomeSoon(approvals: Approvals, id: GateSessionId): Promise<GateSessionRow | undefined> {
  approvals.drive(id)
  return approvals.outcome(id, patienceMs)
}

function refusalOf(session: GateSessionRow | undefined): ApiError {
  if (session?.status !== 'rejected') {
    return new ApiError('gate.approval_in_progress', { headers: { 'retry-after': '1' } })
  }
  const message = 'The service could not provide the account, so the signup was rejected.'
  return new ApiError('gate.session_already_resolved', { message })
}
