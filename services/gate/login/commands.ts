import { isToken, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { unavailable } from '../../../infra/errors/errors.ts'
import type { CommandDeps } from '../../../infra/event-store/command-deps.ts'
import { type GateAccountId, type GateSessionId, randomId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import {
  findAgentToken,
  findGateSession,
  findLoginByCode,
  findTokenOfAccount,
} from '../../../projections/gate/queries.ts'
import type { AgentTokenRow, GateSessionRow } from '../../../projections/gate/tables.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import type { Believed } from '../accounts/believed.ts'
import { isServiceId } from '../registry/fields/service-id.ts'
import { findRegistered } from '../registry/registered.ts'
import type { Requester } from '../requests/requester.ts'
import { seenOf, sessionStream } from '../streams.ts'
import { type ConsumeCode, consumeCode, expiredCode } from './consume-code.ts'
import { openLogin } from './open-login.ts'

interface LoginRequest {
  token: AgentTokenRow
  serviceId: string
  requester: Requester
  publicUrl: string
}

/** Opens a login for the account of the token. ApiError as of `openLogin`. */
export async function createLogin(
  { pool, decide, random, clock }: CommandDeps & { pool: Db },
  { token, serviceId, requester, publicUrl }: LoginRequest,
): Promise<GateSessionRow> {
  const gateSessionId: GateSessionId = randomId('gate', random)
  const now = clock()
  await decide({
    ...sessionStream(gateSessionId),
    // The token is where its signup is.
    alsoReads: [seenOf(token.gate_session_id), seenOf(serviceId)],
    load: async (tx) => {
      // No other text can be the id of one, and some the database would refuse.
      const service = isServiceId(serviceId) ? await findRegistered(tx, { serviceId, publicUrl }) : undefined
      return {
        service,
        token: await findAgentToken(tx, [token.token_hash]),
        organization: await findOrganization(tx, service?.organization_id ?? ''),
        session: await findGateSession(tx, gateSessionId),
      }
    },
    decide: (state) => openLogin(state, { gateSessionId, requester, now }),
  })
  const session = await findGateSession(pool, gateSessionId)
  // Not a refusal: the login exists, and the same command will show it.
  if (!session) throw unavailable(new Error(`the login ${gateSessionId} is not readable`))
  return session
}

export interface LoggedIn {
  gateAccountId: GateAccountId
  accountName: string
}

/** For `alsoReads`: the account's agent token, which is where its signup is. */
export async function tokenOf(db: Db, gateAccountId: string) {
  const token = await findTokenOfAccount(db, gateAccountId)
  return token ? [seenOf(token.gate_session_id)] : []
}

/** Uses up a login code; who is logged in. ApiError as of `consumeCode`. */
export async function consumeLoginCode(
  { pool, keyring, decide, random, clock, believed }: CommandDeps & { pool: Db; believed: Believed },
  { code, ...scope }: Pick<ConsumeCode, 'organizationId' | 'environment'> & { code: string },
): Promise<LoggedIn> {
  const consumptionId = random(16).toString('hex')
  const now = clock()
  const find = () => findLoginByCode(pool, tokenHashes(keyring, code))
  const login = isToken('gtcode', code) && (await believed(find))
  if (!login || login.gate_account_id === null) throw expiredCode()
  const { gate_account_id: gateAccountId, account_name: accountName } = login
  await decide({
    ...sessionStream(login.id),
    alsoReads: await tokenOf(pool, gateAccountId),
    load: async (tx) => ({
      session: await findGateSession(tx, login.id),
      token: await findTokenOfAccount(tx, gateAccountId),
    }),
    decide: (state) => consumeCode(state, { ...scope, consumptionId, now }),
  })
  return { gateAccountId, accountName }
}
