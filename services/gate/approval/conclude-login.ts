import { tokenHashes } from '../../../infra/crypto/tokens.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import { findGateSession, findTokenOfAccount } from '../../../projections/gate/queries.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import type { GateContext } from '../context.ts'
import { approveLogin, loginCode, redirectUrl } from '../login/approve-login.ts'
import { checkAccount } from '../login/check-account.ts'
import { tokenOf } from '../login/commands.ts'
import { serviceOf } from '../registry/registered.ts'
import { findPage } from '../serving/pages.ts'
import { foundSession } from '../session-state.ts'
import { sessionStream } from '../streams.ts'
import type { Approving } from './approving.ts'

/** Approves the login. ApiError: see `approveLogin` and `checkAccount` of ../login; then the session stays pending. */
export async function startLogin(
  { decide, keyring, clock, pool }: GateContext,
  { session, token, proof }: Approving,
): Promise<void> {
  const { id, organization_id: organizationId, gate_account_id: gateAccountId } = session
  const hashes = tokenHashes(keyring, token)
  const { hash: codeHash } = loginCode({ keyring, gateSessionId: id, approveToken: token })
  const now = clock()
  await decide({
    ...sessionStream(id),
    alsoReads: await tokenOf(pool, gateAccountId ?? ''),
    load: async (tx) => ({
      session: await findGateSession(tx, id),
      page: await findPage(tx, id),
      owner: await findOrganization(tx, organizationId ?? ''),
      token: await findTokenOfAccount(tx, gateAccountId ?? ''),
    }),
    decide({ owner, token: agentToken, ...state }) {
      const command = { approveTokenHash: hashes[0], approveTokenHashes: hashes, proof, codeHash, now }
      const decisions = approveLogin(state, command)
      if (decisions.length > 0) checkAccount({ owner, token: agentToken }, now)
      return decisions
    },
  })
}

/**
 * The code of an approved login for whoever has the token that approved it. ApiError: 409 when another one has or the
 * code was used, 410 when the code's time is over.
 */
export async function loginOutcome(context: GateContext, id: GateSessionId, token: string) {
  const { pool, keyring, clock, publicUrl } = context
  const session = foundSession(await findGateSession(pool, id))
  const { code_hash: codeHash, code: state, code_expires_at: expiresAt, service_id: serviceId } = session
  const { code, hash } = loginCode({ keyring, gateSessionId: id, approveToken: token, codeHash })
  if (codeHash !== hash || state === 'consumed') throw new ApiError('gate.session_already_resolved')
  if (state !== 'issued' || (expiresAt ?? 0) <= clock()) throw new ApiError('gate.session_expired')
  const { definition } = await serviceOf(pool, { serviceId, publicUrl })
  const { dashboard_login_url: url } = definition
  // The service may have dropped its dashboard since; the code is good all the same.
  const redirect_url = url && redirectUrl(url, code)
  return { object: 'gate_login_session' as const, id, status: 'approved' as const, code, redirect_url }
}
