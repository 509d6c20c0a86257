import { randomBytes } from 'node:crypto'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { createDecide } from '../../../../infra/decide.ts'
import { createApp } from '../../../../infra/http/app.ts'
import { createAuth } from '../../../../infra/http/auth.ts'
import { createIdempotency, createIdempotencyTables } from '../../../../infra/http/idempotency.ts'
import { createKeyUsageTables } from '../../../../infra/http/key-usage.ts'
import { openPostgresLog } from '../../../../infra/log/postgres/log.ts'
import { transaction } from '../../../../infra/postgres/pool.ts'
import { createAddressRules } from '../../../../infra/webhooks/address-rules.ts'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { findKeyByLookupHash } from '../../../../projections/organizations/key-queries.ts'
import { organizationsProjection } from '../../../../projections/organizations/projection.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import type { DomainEvent } from '../../../../schemas/codec.ts'
import type { Environment } from '../../../../schemas/events.ts'
import { issueApiKey } from '../../../../services/organizations/key-commands.ts'
import {
  createOrganization,
  updateOrganization,
} from '../../../../services/organizations/organization-commands.ts'
import { createLeaseTables } from '../../../../services/webhooks/dispatch/tables.ts'
import { webhookRoutes } from '../../../../services/webhooks/routes.ts'
import { validateResponses } from '../../../support/described.ts'
import { createMemoryLimiter } from '../../../support/memory-limiter.ts'
import { ensureTopics, openProjectionWorld, silent } from '../../../support/projections.ts'

export interface Send {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  url: string
  key?: string
  body?: unknown
  headers?: Record<string, string>
}

/** The webhook routes over the real log, read models, authentication and idempotency; the clock is the test's. */
export async function startWebhooks() {
  const world = await openProjectionWorld()
  const { pool, url } = world.database
  for (const create of [createIdempotencyTables, createKeyUsageTables, createLeaseTables])
    await transaction(pool, create)
  const log = await openPostgresLog({ pool, url, logger: silent })
  await ensureTopics(log)
  const applied = await world.openApplied()
  await world.run(log, organizationsProjection, { applied })
  await world.run(log, webhooksProjection, { applied })
  await world.run(log, gateProjection, { applied })
  const now = { ms: 1_760_000_000_000 }
  const clock = () => now.ms
  const keyring = createKeyring(randomBytes(32).toString('base64'))
  const base = { pool, keyring, clock, random: randomBytes, logger: silent }
  const findKey = (hashes: string[]) => findKeyByLookupHash(pool, hashes)
  const auth = createAuth({ ...base, findKey, limiter: createMemoryLimiter(clock) })
  applied.onChange('organizations', auth.invalidate)
  const decide = createDecide({ pool, log, codec: world.codec, applied, timeoutMs: 30_000 })
  const deps = { ...base, decide, rules: createAddressRules([]) }
  const app = await createApp({ ...base, publicUrl: 'https://tidegate.example' })
  validateResponses(app)
  const config = { WEBHOOK_ALLOWED_NETWORKS: [] }
  webhookRoutes(app, { ...deps, config, auth, readPool: pool, idempotency: createIdempotency(base) })

  /** An organization with a secret key of an environment that may do everything. */
  async function organization(environment: Environment = 'live') {
    const slug = `org-${randomBytes(4).toString('hex')}`
    const { organizationId } = await createOrganization(deps, { name: 'Acme', slug })
    const key = await secretKey(organizationId, environment)
    const path = `/v1/organizations/${organizationId}`
    return {
      organizationId,
      environment,
      key,
      endpoints: `${path}/webhooks/endpoints`,
      events: `${path}/events`,
    }
  }

  async function secretKey(organizationId: string, environment: Environment): Promise<string> {
    const asked = { organizationId, name: 'Key', environment, type: 'secret', scopes: ['*'] } as const
    return (await issueApiKey(deps, { ...asked, scopes: [...asked.scopes] })).revealedKey
  }

  async function send({ method = 'GET', url, key, body, headers = {} }: Send) {
    const response = await app.inject({
      method,
      url,
      headers: {
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { payload: JSON.stringify(body) }),
    })
    return { status: response.statusCode, headers: response.headers, body: response.json() }
  }

  /** Appends the events of one organization and waits until they are applied. */
  async function append(of: { organizationId: string; environment: Environment }, ...events: DomainEvent[]) {
    const records = events.map((event) =>
      world.codec.toRecord(event, { eventId: `evt_${randomBytes(8).toString('hex')}`, time: now.ms, ...of }),
    )
    const projection = events.some(({ type }) => type.startsWith('Gate')) ? 'gate' : 'webhooks'
    await applied.waitFor(projection, await log.append(records), { timeoutMs: 20_000 })
  }

  return {
    app,
    pool,
    url,
    now,
    deps,
    organization,
    secretKey,
    send,
    append,
    /** As when the process died before it stored them. */
    loseAnswers: () => pool.query('update tidegate.idempotency_keys set answer = null, locked_until = 0'),
    suspend: (organizationId: string) =>
      updateOrganization(deps, { organizationId, status: 'suspended', by: 'operator' }),
    async stop() {
      await app.close()
      await world.stopRunners()
      await log.close()
      await world.close()
    },
  }
}

export type Webhooks = Awaited<ReturnType<typeof startWebhooks>>
