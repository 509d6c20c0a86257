import type { Keyring, MasterKey } from '../../../infra/crypto/keyring.ts'
import {
  generateToken,
  isToken,
  isTokenOf,
  type Token,
  tokenHashes,
} from '../../../infra/crypto/tokens.ts'
import { ApiError, unavailable } from '../../../infra/errors/errors.ts'
import { type GateSessionId, randomId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { counterRandom } from '../../../infra/random.ts'
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
import { findRegistered, serviceOf } from '../registry/registered.ts'
import type { Requester } from '../requests.ts'
import { foundSession, type Proof, seenOf, sessionStream } from '../sessions.ts'
import {
  checkAccount,
  decideCodeConsumption,
  decideLoginApproval,
  decideLoginOpening,
  expiredCode,
} from './decide.ts'

/** ApiError as `decideLoginOpening`. */
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
    // The token is where its signup is.
    alsoReads: [seenOf(token.gate_session_id), seenOf(serviceId)],
    load: async (tx) => {
      // No other text can be the id of one, and the database would refuse some.
      const service = isServiceId(serviceId)
        ? await findRegistered(tx, { serviceId, publicUrl })
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
  // This is no refusal, because the login exists, and the same command will find it.
  if (!session) throw unavailable(new Error(`the login ${gateSessionId} is not readable`))
  return session
}

// For `alsoReads`: the account's agent token is in the stream of its signup.
async function readsTokenOf(db: Db, gateAccountId: string) {
  const token = await findTokenOfAccount(db, gateAccountId)
  return token ? [seenOf(token.gate_session_id)] : []
}

/** Resolves to who is logged in. ApiError as `decideCodeConsumption`. */
export async function consumeLoginCode(
  {
    pool,
    keyring,
    decide,
    random,
    clock,
    readCurrent,
  }: GateDeps & Pick<GateContext, 'readCurrent'>,
  code: string,
  scope: TokenScope,
): Promise<{ gate_account_id: string; account_name: string }> {
  const consumptionId = random(16).toString('hex')
  const now = clock()
  const find = () => findLoginByCode(pool, tokenHashes(keyring, code))
  const login = isToken('gtcode', code) && (await readCurrent(find))
  if (!login || login.gate_account_id === null) throw expiredCode()
  const { gate_account_id, account_name } = login
  await decide({
    ...sessionStream(login.id),
    alsoReads: await readsTokenOf(pool, gate_account_id),
    load: async (tx) => ({
      session: await findGateSession(tx, login.id),
      token: await findTokenOfAccount(tx, gate_account_id),
    }),
    decide: (state) => decideCodeConsumption(state, { ...scope, consumptionId, now }),
  })
  return { gate_account_id, account_name }
}

/** ApiError as `decideLoginApproval` and `checkAccount`; then the session stays pending. */
export async function approveLogin(
  { decide, keyring, clock, pool }: GateDeps,
  { session, token, proof }: { session: GateSessionRow; token: Token<'gtapr'>; proof: Proof },
): Promise<void> {
  const { id, organization_id: organizationId, gate_account_id: gateAccountId } = session
  const approveTokenHashes = tokenHashes(keyring, token)
  const { hash: codeHash } = loginCode({ keyring, gateSessionId: id, approveToken: token })
  const now = clock()
  await decide({
    ...sessionStream(id),
    alsoReads: await readsTokenOf(pool, gateAccountId ?? ''),
    load: async (tx) => ({
      session: await findGateSession(tx, id),
      owner: await findOrganization(tx, organizationId ?? ''),
      token: await findTokenOfAccount(tx, gateAccountId ?? ''),
    }),
    decide({ session, owner, token: agentToken }) {
      const decisions = decideLoginApproval(session, { approveTokenHashes, proof, codeHash, now })
      if (decisions.length > 0) checkAccount({ owner, token: agentToken }, now)
      return decisions
    },
  })
}

/** ApiError: 409 when another token approved the login or the code was used, 410 when the code has expired. */
export async function loginOutcome(context: GateContext, id: GateSessionId, token: string) {
  const { pool, keyring, clock, publicUrl } = context
  const session = foundSession(await findGateSession(pool, id))
  const {
    code_hash: codeHash,
    code: state,
    code_expires_at: expiresAt,
    service_id: serviceId,
  } = session
  const { code, hash } = loginCode({ keyring, gateSessionId: id, approveToken: token, codeHash })
  if (codeHash !== hash || state === 'consumed') throw new ApiError('gate.session_already_resolved')
  if (state !== 'issued' || (expiresAt ?? 0) <= clock()) throw new ApiError('gate.session_expired')
  const { definition } = await serviceOf(pool, { serviceId, publicUrl })
  // To where the consent page said. Where the service has dropped its dashboard since, the code is good all the same.
  const url = definition.dashboard_login_url && session.dashboard_login_url
  const redirect_url = url && redirectUrl(url, code)
  return {
    object: 'gate_login_session' as const,
    id,
    status: 'approved' as const,
    code,
    redirect_url,
  }
}

/**
 * The one-time code of an approval, stored nowhere. It is derived from a master key, the session and the approve
 * token, so that a repetition gets the same one. `codeHash`: that of an approved login, whose code is made again by
 * whichever known master key made it.
 */
export function loginCode(options: {
  keyring: Keyring
  gateSessionId: string
  approveToken: string
  codeHash?: string | null
}): { code: Token<'gtcode'>; hash: string } {
  const { keyring, gateSessionId, approveToken, codeHash = null } = options
  const seed = Buffer.from(`${gateSessionId}\0${approveToken}`)
  const codeUnder = (master: MasterKey) =>
    generateToken('gtcode', counterRandom(master.derive('gate-login-code'), seed))
  if (codeHash !== null) {
    const made = keyring.all
      .map(codeUnder)
      .find((code) => isTokenOf(keyring, { token: code, hash: codeHash }))
    if (made !== undefined) return { code: made, hash: codeHash }
  }
  const code = codeUnder(keyring.current)
  return { code, hash: tokenHashes(keyring, code)[0] }
}

/** The service's dashboard with `code` in the query, and the rest of the URL as it was. */
export function redirectUrl(dashboardLoginUrl: string, code: string): string {
  const url = new URL(dashboardLoginUrl)
  if (url.searchParams.has('code')) url.searchParams.delete('code')
  url.search = url.search === '' ? `code=${code}` : `${url.search}&code=${code}`
  return url.href
}
