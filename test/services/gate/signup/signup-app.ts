import { randomBytes } from 'node:crypto'
import { generateDeliveryKeys, sealEnvelope } from '../../../../infra/crypto/delivery-envelope.ts'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { generateToken, tokenHashes } from '../../../../infra/crypto/tokens.ts'
import { createDecide } from '../../../../infra/decide.ts'
import { createApp } from '../../../../infra/http/app.ts'
import {
  type Command,
  createIdempotency,
  createIdempotencyTables,
} from '../../../../infra/http/idempotency.ts'
import { asId, type GateSessionId, randomId } from '../../../../infra/ids.ts'
import { openPostgresLog } from '../../../../infra/log/postgres/log.ts'
import { transaction } from '../../../../infra/postgres/pool.ts'
import { createAddressRules } from '../../../../infra/webhooks/address-rules.ts'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { findGateSession } from '../../../../projections/gate/session-queries.ts'
import { organizationsProjection } from '../../../../projections/organizations/projection.ts'
import type { OrganizationStatus } from '../../../../projections/organizations/rows.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import { approveSignup, failSignup } from '../../../../services/gate/approval/finish-approval.ts'
import { startApproval } from '../../../../services/gate/approval/start-approval.ts'
import { sealBundle } from '../../../../services/gate/bundle.ts'
import { createGateLimits } from '../../../../services/gate/limits.ts'
import { createPages, findPage } from '../../../../services/gate/pages.ts'
import { deliveryTtlMs, sessionTtlMs } from '../../../../services/gate/session-state.ts'
import { signupRoutes } from '../../../../services/gate/signup/routes.ts'
import { sessionStream } from '../../../../services/gate/streams.ts'
import { createGateTables } from '../../../../services/gate/tables.ts'
import { createVault } from '../../../../services/gate/vault.ts'
import { updateOrganization } from '../../../../services/organizations/organization-commands.ts'
import { validateResponses } from '../../../support/described.ts'
import { ensureTopics, openProjectionWorld, silent } from '../../../support/projections.ts'

interface Send {
  method?: 'GET' | 'POST'
  url: string
  token?: string
  body?: unknown
  headers?: Record<string, string>
  ip?: string
}

export interface Opened {
  id: GateSessionId
  poll_token: string
  status: string
  consent_url: string
  expires_at: string
}

export const publicUrl = 'https://tidegate.example'

/** The routes of signups over the real log, read models, vault and limits; the clock is the test's. */
export async function startSignups() {
  const world = await openProjectionWorld()
  const { pool, url } = world.database
  await transaction(pool, async (tx) => {
    await createIdempotencyTables(tx)
    await createGateTables(tx)
  })
  const log = await openPostgresLog({ pool, url, logger: silent })
  await ensureTopics(log)
  const applied = await world.openApplied()
  for (const projection of [organizationsProjection, webhooksProjection, gateProjection])
    await world.run(log, projection, { applied })
  const now = { ms: 1_760_000_000_000 }
  const keyring = createKeyring(randomBytes(32).toString('base64'))
  const base = { pool, keyring, clock: () => now.ms, random: randomBytes, logger: silent }
  const decide = createDecide({ pool, log, codec: world.codec, applied, timeoutMs: 30_000 })
  const parts = {
    ...base,
    publicUrl,
    decide,
    limits: createGateLimits(pool),
    vault: createVault(base),
    pages: createPages(base),
  }
  const app = await createApp({ ...base, publicUrl })
  validateResponses(app)
  signupRoutes(app, {
    ...parts,
    idempotency: createIdempotency(base),
    depsOf: ({ random, now }: Command) => ({ ...base, decide, random, idTime: now }),
  })
  await app.ready()
  let sources = 0

  async function send({ method = 'GET', url, token, body, headers = {}, ip }: Send) {
    const response = await app.inject({
      method,
      url: `/v1/gate/sessions${url}`,
      // Of a network of its own, unless the test says so: limits are by address.
      remoteAddress: ip ?? `203.0.${Math.floor(sources / 250) % 250}.${(sources++ % 250) + 1}`,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { status: response.statusCode, headers: response.headers, body: response.json() }
  }

  const keys = generateDeliveryKeys()

  async function open(serviceId = 'tidegate'): Promise<Opened> {
    const body = { service_id: serviceId, account_name: 'Robin', delivery: keys.delivery }
    const opened = await send({ method: 'POST', url: '', body })
    if (opened.status !== 201) throw new Error(`no session: ${JSON.stringify(opened.body)}`)
    return opened.body.data
  }

  /** As the approval of a person would, without asking any service. */
  async function start(id: GateSessionId): Promise<void> {
    const [approveTokenHash, ...older] = tokenHashes(keyring, await parts.pages.open(id))
    await parts.vault.make(id)
    const proof = {
      verdict: 'human',
      riskScore: 12,
      sessionId: randomId('sid', randomBytes),
      decisionId: randomId('evt', randomBytes),
    } as const
    await decide({
      ...sessionStream(id),
      load: async (tx) => ({
        session: await findGateSession(tx, id),
        page: await findPage(tx, id),
        endpointId: null,
      }),
      decide: (state) =>
        startApproval(state, {
          approveTokenHash,
          approveTokenHashes: [approveTokenHash, ...older],
          proof,
          gateAccountId: randomId('gacct', randomBytes),
          now: now.ms,
        }),
    })
  }

  /** Starts it, and ends it with credentials; resolves to the ack token. */
  async function approve(id: GateSessionId): Promise<string> {
    await start(id)
    const ackToken = generateToken('gtack', randomBytes)
    const sealed = (payload: { outputs: Record<string, string>; ack_token?: string }) =>
      sealEnvelope({ version: 1, ...payload }, { delivery: keys.delivery, random: randomBytes })
    const bundle = {
      integrator: sealed({ outputs: { ACME_KEY: 'secret' } }),
      gate: sealed({ outputs: {}, ack_token: ackToken }),
    }
    const dataKey = await parts.vault.make(id)
    const delivery_sealed = sealBundle(bundle, { dataKey, gateSessionId: id, random: randomBytes })
    await decide({
      ...sessionStream(id),
      load: (tx) => findGateSession(tx, id),
      decide: (session) =>
        approveSignup(session, {
          delivery_sealed,
          delivery_expires_at: now.ms + deliveryTtlMs,
          ack_token_hash: tokenHashes(keyring, ackToken)[0],
          agent_token_hash: null,
          agent_token_expires_at: null,
          approved_at: now.ms,
        }),
    })
    return ackToken
  }

  /** A login that waits, whose account is nobody's. */
  async function openLogin(): Promise<GateSessionId> {
    const id = randomId('gate', randomBytes)
    const { ms: opened_at } = now
    const data = {
      gate_session_id: id,
      service_id: 'tidegate',
      organization_id: null,
      environment: 'live',
      gate_account_id: randomId('gacct', randomBytes),
      account_name: 'Robin',
      requested_ip: null,
      requested_user_agent: null,
      opened_at,
      expires_at: opened_at + sessionTtlMs,
    } as const
    const meta = {
      eventId: randomId('evt', randomBytes),
      time: opened_at,
      organizationId: null,
      environment: null,
    }
    await decide({
      ...sessionStream(id),
      load: async () => undefined,
      decide: () => [{ event: { type: 'LoginSessionOpened', data }, meta }],
    })
    return id
  }

  /** Ends a started approval as when the service never answers. */
  async function fail(id: GateSessionId): Promise<void> {
    await decide({
      ...sessionStream(id),
      load: (tx) => findGateSession(tx, id),
      decide: (session) => failSignup(session, { problem: 'It did not answer.', now: now.ms }),
    })
  }

  return {
    app,
    pool,
    now,
    parts,
    keys,
    deps: { ...base, decide, rules: createAddressRules([]) },
    send,
    open,
    openLogin,
    start,
    approve,
    fail,
    setStatus: (organizationId: string, status: OrganizationStatus) =>
      updateOrganization({ ...base, decide }, { organizationId, status, by: 'operator' }),
    session: (id: string) => findGateSession(pool, asId('gate', id)),
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

export type Signups = Awaited<ReturnType<typeof startSignups>>
