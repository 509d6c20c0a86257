import { randomBytes } from 'node:crypto'
import { createKeyring, type Keyring } from '../../../../infra/crypto/keyring.ts'
import { generateToken, isTokenOf, type Token, tokenHashes } from '../../../../infra/crypto/tokens.ts'
import { createDecide, type Decide } from '../../../../infra/decide.ts'
import { createApp } from '../../../../infra/http/app.ts'
import { createAuth } from '../../../../infra/http/auth.ts'
import { unavailable } from '../../../../infra/http/errors.ts'
import {
  type Command,
  createIdempotency,
  createIdempotencyTables,
} from '../../../../infra/http/idempotency.ts'
import { type GateAccountId, type GateSessionId, randomId } from '../../../../infra/ids.ts'
import { openPostgresLog } from '../../../../infra/log/postgres/log.ts'
import { transaction } from '../../../../infra/postgres/pool.ts'
import { createAddressRules } from '../../../../infra/webhooks/address-rules.ts'
import { findAgentToken } from '../../../../projections/gate/agent-token-queries.ts'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { findGateSession } from '../../../../projections/gate/session-queries.ts'
import { findKeyByLookupHash } from '../../../../projections/organizations/key-queries.ts'
import { organizationsProjection } from '../../../../projections/organizations/projection.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import type { DomainEvent } from '../../../../schemas/codec.ts'
import { accountRoutes } from '../../../../services/gate/accounts/routes.ts'
import { createGateLimits } from '../../../../services/gate/limits.ts'
import { approveLogin, loginCode } from '../../../../services/gate/login/approve-login.ts'
import { loginRoutes } from '../../../../services/gate/login/routes.ts'
import { createPages, findPage } from '../../../../services/gate/pages.ts'
import { agentTokenTtlMs, deliveryTtlMs, sessionTtlMs } from '../../../../services/gate/session-state.ts'
import { sessionStream } from '../../../../services/gate/streams.ts'
import { createGateTables } from '../../../../services/gate/tables.ts'
import { validateResponses } from '../../../support/described.ts'
import { type GateOwner, gateOwner } from '../../../support/gate-world.ts'
import { createMemoryLimiter } from '../../../support/memory-limiter.ts'
import { ensureTopics, openProjectionWorld, silent } from '../../../support/projections.ts'

export interface Send {
  key?: string
  body?: unknown
  headers?: Record<string, string>
}

export interface Account {
  token: Token<'agt'>
  gateAccountId: GateAccountId
  /** The signup that made it. */
  gateSessionId: GateSessionId
}

/** The routes of agent tokens and logins over the real log, read models, limits, authentication and idempotency. */
export async function startAccounts() {
  const world = await openProjectionWorld()
  const { pool, url } = world.database
  for (const create of [createIdempotencyTables, createGateTables]) await transaction(pool, create)
  const log = await openPostgresLog({ pool, url, logger: silent })
  await ensureTopics(log)
  const applied = await world.openApplied()
  for (const projection of [organizationsProjection, webhooksProjection, gateProjection])
    await world.run(log, projection, { applied })
  const now = { ms: 1_760_000_000_000 }
  const clock = () => now.ms
  const keyring = createKeyring(randomBytes(32).toString('base64'))
  const base = {
    pool,
    keyring,
    clock,
    random: randomBytes,
    logger: silent,
    publicUrl: 'https://tidegate.example',
  }
  const findKey = (hashes: string[]) => findKeyByLookupHash(pool, hashes)
  const auth = createAuth({ ...base, findKey, limiter: createMemoryLimiter(clock) })
  applied.onChange('organizations', auth.invalidate)
  const outage = { isOn: false }
  const decideNow = createDecide({ pool, log, codec: world.codec, applied, timeoutMs: 30_000 })
  const decide: Decide = (request) =>
    outage.isOn ? Promise.reject(unavailable(new Error('the log is away'))) : decideNow(request)
  const app = await createApp(base)
  validateResponses(app)
  const context = {
    ...base,
    decide,
    auth,
    limits: createGateLimits(pool),
    idempotency: createIdempotency(base),
    depsOf: ({ random, now: idTime }: Command) => ({ ...base, decide, random, idTime }),
    scopeOf(request: Parameters<typeof auth.secret>[0]) {
      const { organizationId, environment } = auth.secret(request)
      return { organizationId, environment }
    },
  }
  accountRoutes(app, context)
  loginRoutes(app, context)
  const deps = { ...base, decide, rules: createAddressRules([]) }
  const pages = createPages(base)

  /** POST to a path below /v1/gate. */
  async function post(path: string, { key, body, headers = {} }: Send = {}) {
    const response = await app.inject({
      method: 'POST',
      url: `/v1/gate/${path}`,
      headers: {
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { payload: JSON.stringify(body) }),
    })
    const text = response.body
    return {
      status: response.statusCode,
      headers: response.headers,
      body: text ? JSON.parse(text) : undefined,
    }
  }

  /** A signup for the owner's service that was approved now, with its agent token. */
  async function account(owner: GateOwner): Promise<Account> {
    const token = generateToken('agt', randomBytes)
    const gateAccountId = randomId('gacct', randomBytes)
    const gateSessionId = randomId('gate', randomBytes)
    const events = signupEvents(owner, { token, gateAccountId, gateSessionId, keyring, now: now.ms })
    const { organizationId, environment } = owner
    const meta = () => ({ eventId: randomId('evt', randomBytes), time: now.ms, organizationId, environment })
    const positions = await world.append(
      log,
      events.map((event) => ({ event, meta: meta() })),
    )
    await applied.waitFor('gate', positions, { timeoutMs: 20_000 })
    return { token, gateAccountId, gateSessionId }
  }

  /** A person approves the login; its one-time code. */
  async function approve(gateSessionId: string): Promise<string> {
    const id = (await findGateSession(pool, gateSessionId))?.id
    if (!id) throw new Error(`there is no login ${gateSessionId}`)
    const approveToken = await pages.open(id)
    const approveTokenHashes = tokenHashes(keyring, approveToken)
    const { code, hash: codeHash } = loginCode({ keyring, gateSessionId, approveToken })
    const proof = { verdict: 'human', riskScore: 7, sessionId: 'sid_1', decisionId: 'evt_1' }
    const command = {
      approveTokenHash: approveTokenHashes[0],
      approveTokenHashes,
      proof,
      codeHash,
      now: now.ms,
    }
    await decide({
      ...sessionStream(id),
      load: async (tx) => ({ session: await findGateSession(tx, id), page: await findPage(tx, id) }),
      decide: (state) => approveLogin(state, command),
    })
    return code
  }

  /** How often an event about the signup or login happened. */
  async function count(type: DomainEvent['type'], gateSessionId: string): Promise<number> {
    const { rows } = await pool.query<{ count: number }>(
      `select count(*)::int as count from tidegate_log.records where key = $1 and headers->>'event_type' = $2`,
      [gateSessionId, type],
    )
    return rows[0]?.count ?? 0
  }

  return {
    app,
    pool,
    now,
    deps,
    outage,
    context,
    post,
    account,
    approve,
    count,
    owner: (options?: Parameters<typeof gateOwner>[1]) => gateOwner(deps, options),
    /** The token as it is stored. */
    stored: (token: string) => findAgentToken(pool, tokenHashes(keyring, token)),
    login: (gateSessionId: string) => findGateSession(pool, gateSessionId),
    isStoredAs: (token: string, hash: string | null) => isTokenOf(keyring, { token, hash }),
    /** As when the process died before it stored them. */
    loseAnswers: () => pool.query('update tidegate.idempotency_keys set answer = null, locked_until = 0'),
    async stop() {
      await app.close()
      await world.stopRunners()
      await log.close()
      await world.close()
    },
  }
}

interface Signup extends Account {
  keyring: Keyring
  now: number
}

function signupEvents(
  owner: GateOwner,
  { token, gateAccountId, gateSessionId, keyring, now }: Signup,
): DomainEvent[] {
  const { serviceId, organizationId, environment } = owner
  const about = { gate_session_id: gateSessionId, gate_account_id: gateAccountId }
  return [
    {
      type: 'GateSessionOpened',
      data: {
        gate_session_id: gateSessionId,
        service_id: serviceId,
        organization_id: organizationId,
        environment,
        account_name: 'Robin',
        metadata: null,
        delivery_key_id: 'key',
        delivery_public_key: 'public',
        poll_token_hash: 'poll',
        requested_ip: null,
        requested_user_agent: null,
        opened_at: now,
        expires_at: now + sessionTtlMs,
      },
    },
    {
      type: 'GateSessionApproved',
      data: {
        ...about,
        delivery_sealed: Buffer.from('sealed'),
        delivery_expires_at: now + deliveryTtlMs,
        ack_token_hash: 'ack',
        agent_token_hash: tokenHashes(keyring, token)[0],
        agent_token_expires_at: now + agentTokenTtlMs,
        approved_at: now,
      },
    },
  ] satisfies DomainEvent[]
}

export type Accounts = Awaited<ReturnType<typeof startAccounts>>
