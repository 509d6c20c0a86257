import type { Keyring, MasterKey } from '../../../infra/crypto/keyring.ts'
import {
  generateToken,
  isToken,
  matchesTokenHash,
  type Token,
  tokenHashes,
} from '../../../infra/crypto/tokens.ts'
import { ApiError, unavailable } from '../../../infra/errors/errors.ts'
import { type GateSessionId, randomId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { createDeterministicRandom } from '../../../infra/random.ts'
import { generateConfirmationCode } from '../../../infra/wire/gate.ts'
import {
  findAgentToken,
  findGateSession,
  findLoginByCode,
  findTokenOfAccount,
} from '../../../projections/gate/queries.ts'
import type { AgentTokenRow, GateSessionRow } from '../../../projections/gate/tables.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import type { TokenScope } from '../accounts/decide.ts'
import type { GateContext, GateDeps } from '../context.ts'
import { isServiceId } from '../registry/fields.ts'
import { findRegisteredService, requireRegisteredService } from '../registry/registered-services.ts'
import type { Requester } from '../requests.ts'
import { gateEventsOf, type Proof, requireSession, sessionStream } from '../sessions.ts'
import {
  decideCodeConsumption,
  decideLoginApproval,
  decideLoginOpening,
  expiredCodeError,
  requireUsableAccount,
} from './decide.ts'

/** Opens a dashboard login. Throws the errors of `decideLoginOpening`. */
export async function openLogin(
  { pool, decide, random, clock, publicUrl }: GateDeps,
  {
    token,
    serviceId,
    requester,
  }: { token: AgentTokenRow; serviceId: string; requester: Requester },
): Promise<GateSessionRow> {
  const gateSessionId: GateSessionId = randomId('gate', random)
  const confirmationCode = generateConfirmationCode(random)
  const now = clock()
  await decide({
    ...sessionStream(gateSessionId),
    // A token's events are in the stream of its signup.
    alsoReads: [gateEventsOf(token.gate_session_id), gateEventsOf(serviceId)],
    load: async (tx) => {
      // PostgreSQL rejects some malformed ids, such as one with U+0000.
      const service = isServiceId(serviceId)
        ? await findRegisteredService(tx, { serviceId, publicUrl })
        : undefined
      return {
        service,
        token: await findAgentToken(tx, [token.token_hash]),
        organization: await findOrganization(tx, service?.organization_id ?? ''),
        session: await findGateSession(tx, gateSessionId),
      }
    },
    decide: (state) =>
      decideLoginOpening(state, { gateSessionId, requester, confirmationCode, now }),
  })
  const session = await findGateSession(pool, gateSessionId)
  // Retryable, because a repeated command finds the login.
  if (!session) throw unavailable(new Error(`the login ${gateSessionId} is not readable`))
  return session
}

// Returns `alsoReads` for the account's agent token, whose events are in the stream of its signup.
async function alsoReadsToken(db: Db, gateAccountId: string) {
  const token = await findTokenOfAccount(db, gateAccountId)
  return token ? [gateEventsOf(token.gate_session_id)] : []
}

/** Consumes the code and returns its account. Throws the errors of `decideCodeConsumption`. */
export async function consumeLoginCode(
  { pool, keyring, decide, random, clock, readFresh }: GateDeps & Pick<GateContext, 'readFresh'>,
  code: string,
  scope: TokenScope,
): Promise<{ gate_account_id: string; account_name: string }> {
  const consumptionId = random(16).toString('hex')
  const now = clock()
  const find = () => findLoginByCode(pool, tokenHashes(keyring, code))
  const login = isToken('gtcode', code) && (await readFresh(find))
  if (!login || login.gate_account_id === null) throw expiredCodeError()
  const { gate_account_id, account_name } = login
  await decide({
    ...sessionStream(login.id),
    alsoReads: await alsoReadsToken(pool, gate_account_id),
    load: async (tx) => ({
      session: await findGateSession(tx, login.id),
      token: await findTokenOfAccount(tx, gate_account_id),
    }),
    decide: (state) => decideCodeConsumption(state, { ...scope, consumptionId, now }),
  })
  return { gate_account_id, account_name }
}

/** Throws the errors of `decideLoginApproval` and `requireUsableAccount`, after which the session stays pending. */
export async function approveLogin(
  { decide, keyring, clock, pool }: GateDeps,
  { session, token, proof }: { session: GateSessionRow; token: Token<'gtapr'>; proof: Proof },
): Promise<void> {
  const { id, organization_id: organizationId, gate_account_id: gateAccountId } = session
  const approveTokenHashes = tokenHashes(keyring, token)
  const { hash: codeHash } = deriveLoginCode({ keyring, gateSessionId: id, approveToken: token })
  const now = clock()
  await decide({
    ...sessionStream(id),
    alsoReads: await alsoReadsToken(pool, gateAccountId ?? ''),
    load: async (tx) => ({
      session: await findGateSession(tx, id),
      owner: await findOrganization(tx, organizationId ?? ''),
      token: await findTokenOfAccount(tx, gateAccountId ?? ''),
    }),
    decide({ session, owner, token: agentToken }) {
      const events = decideLoginApproval(session, { approveTokenHashes, proof, codeHash, now })
      if (events.length > 0) requireUsableAccount({ owner, token: agentToken }, now)
      return events
    },
  })
}

/**
 * Returns the response with the code and redirect URL of an approved login. Throws 409 if the login was approved with
 * another token or the code was used, and 410 if the code has expired.
 */
export async function loginOutcome(context: GateContext, id: GateSessionId, approveToken: string) {
  const { pool, keyring, clock, publicUrl } = context
  const session = requireSession(await findGateSession(pool, id))
  const {
    code_hash: codeHash,
    code: codeStatus,
    code_expires_at: expiresAt,
    service_id: serviceId,
  } = session
  const { code, hash } = deriveLoginCode({ keyring, gateSessionId: id, approveToken, codeHash })
  if (codeHash !== hash || codeStatus === 'consumed')
    throw new ApiError('gate.session_already_resolved')
  if (codeStatus !== 'issued' || (expiresAt ?? 0) <= clock())
    throw new ApiError('gate.session_expired')
  const { definition } = await requireRegisteredService(pool, { serviceId, publicUrl })
  // The URL that the consent page showed; null if the service has removed its dashboard since.
  const url = definition.dashboard_login_url && session.dashboard_login_url
  const redirect_url = url && loginRedirectUrl(url, code)
  return {
    object: 'gate_login_session' as const,
    id,
    status: 'approved' as const,
    code,
    redirect_url,
  }
}

/**
 * Returns the one-time login code, derived from a master key, the session and the approve token, so that a repeated
 * request gets the same code. If the stored `codeHash` is passed, tries all master keys to find the matching code.
 */
export function deriveLoginCode(options: {
  keyring: Keyring
  gateSessionId: string
  approveToken: string
  codeHash?: string | null
}): { code: Token<'gtcode'>; hash: string } {
  const { keyring, gateSessionId, approveToken, codeHash = null } = options
  const seed = Buffer.from(`${gateSessionId}\0${approveToken}`)
  const codeUnder = (master: MasterKey) =>
    generateToken('gtcode', createDeterministicRandom(master.derive('gate-login-code'), seed))
  if (codeHash !== null) {
    const code = keyring.all
      .map(codeUnder)
      .find((candidate) => matchesTokenHash(keyring, { token: candidate, hash: codeHash }))
    if (code !== undefined) return { code, hash: codeHash }
  }
  const code = codeUnder(keyring.current)
  return { code, hash: tokenHashes(keyring, code)[0] }
}

/** Returns the dashboard URL with the code in its query. */
export function loginRedirectUrl(dashboardLoginUrl: string, code: string): string {
  const url = new URL(dashboardLoginUrl)
  if (url.searchParams.has('code')) url.searchParams.delete('code')
  url.search = url.search === '' ? `code=${code}` : `${url.search}&code=${code}`
  return url.href
}
