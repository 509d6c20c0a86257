import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import pino from 'pino'
import { createAuth } from '../../../infra/access/auth.ts'
import type { KeyRecord } from '../../../infra/access/principal.ts'
import type { RateLimiter } from '../../../infra/access/rate-limit/limiter.ts'
import type { ReadShares } from '../../../infra/access/read-shares.ts'
import { generateApiKey, lookupHashes } from '../../../infra/crypto/api-keys.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { createApplied } from '../../../infra/event-store/applied.ts'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { createDecide } from '../../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { rebuild } from '../../../infra/event-store/rebuild.ts'
import { runProjection } from '../../../infra/event-store/runner.ts'
import { createApp } from '../../../infra/http/app.ts'
import { createIdempotency } from '../../../infra/idempotency/idempotency.ts'
import type { NewRecord } from '../../../infra/log/port.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import type { Environment, SessionScored } from '../../../schemas/events.ts'
import { markRoutes } from '../../../services/marks/routes.ts'
import { readbackRoutes } from '../../../services/readback/routes.ts'
import { createScoreExplainer } from '../../../services/scoring/explain/score.ts'
import { createLinkExplainer } from '../../../services/scoring/visitors/explain.ts'
import { validateResponses } from '../../support/described.ts'
import { noSkips } from '../../support/no-skips.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { testCause } from '../../support/projections.ts'
import { metaOf, sessionScored } from '../../support/session-scored.ts'

const logger = pino({ level: 'silent' })
const topic = 'tidegate.sessions.v1'

export const organizationId = 'org_00000000000000000000000001'

/** An id whose last characters are the number. */
export function id<P extends string>(prefix: P, number: number) {
  return `${prefix}_${String(number).padStart(26, '0')}` as const
}

interface KeyOptions {
  organizationId?: `org_${string}`
  environment?: Environment
  scopes?: string[]
}

interface Reading {
  limiter?: RateLimiter
  shares?: ReadShares
  statementTimeoutMs?: number
}

/** The routes of reading and marking on a real database, filled through the real log and projection. */
export async function startReadback({ limiter, shares, statementTimeoutMs }: Reading = {}) {
  const database = await createTestDatabase()
  const { pool, url } = database
  const log = await openPostgresLog({ pool, url, logger })
  await log.ensureTopics(
    [topic, 'tidegate.erasures.v1'].map((name) => ({ topic: name, partitions: 3 })),
  )
  const codec = createCodec()
  const applied = await createApplied({ url, pool, logger })
  const running = await runProjection({
    projection: sessionsProjection,
    log,
    pool,
    codec,
    applied,
    logger,
    skips: noSkips,
  })
  const keyring = createKeyring(randomBytes(32).toString('base64'))
  const keys = new Map<string, KeyRecord>()
  const findKey = async (hashes: string[]) => hashes.map((hash) => keys.get(hash)).find(Boolean)
  const auth = createAuth({ findKey, keyring, clock: Date.now, limiter })
  const decideAs = createDecide({ pool, log, codec, applied })
  const app = await createApp({
    logger,
    random: randomBytes,
    publicUrl: 'https://tidegate.example',
  })
  validateResponses(app)
  const identify = createLinkExplainer(pool)
  const deps = { pool, decideAs, auth, keyring, clock: Date.now, random: randomBytes, logger }
  const readPool = createPool({ url, max: 2, ...(statementTimeoutMs && { statementTimeoutMs }) })
  const explainScore = createScoreExplainer(pool)
  readbackRoutes(app, { ...deps, pool: readPool, shares, identify, explainScore })
  markRoutes(app, { ...deps, idempotency: createIdempotency(deps) })

  function key({ environment = 'live', scopes = ['*'], ...options }: KeyOptions = {}): string {
    const { key } = generateApiKey({ type: 'secret', environment, keyring, random: randomBytes })
    const [hash = ''] = lookupHashes(keyring, key)
    const organization = options.organizationId ?? organizationId
    const base = {
      keyId: 'key_1',
      organizationId: organization,
      environment,
      rateLimit: null,
    } as const
    const principal = { ...base, type: 'secret', scopes, capabilities: [], origins: [] } as const
    keys.set(hash, {
      principal,
      status: 'active',
      graceExpiresAt: null,
      organizationStatus: 'active',
    })
    return key
  }

  const owner = key()
  return {
    app,
    pool,
    readPool,
    log,
    key,
    send: (request: Send) => send(app, { key: owner, ...request }),
    /** Appends the records and waits until they are applied. */
    async append(records: NewRecord[]): Promise<void> {
      await applied.waitFor('sessions', await log.append(records), { timeoutMs: 20_000 })
    },
    /** Appends events that somebody caused, and waits until they are applied. */
    async cause(...events: Caused[]): Promise<void> {
      const about = { organizationId, environment: 'live', time: 1 } as const
      const records = events.map((event) =>
        codec.toCausedRecord(event, { ...about, eventId: event.data.event_id }, testCause),
      )
      await this.append(records)
    },
    rebuild: () =>
      rebuild({ projection: sessionsProjection, log, pool, codec, logger, skips: noSkips }),
    /** Appends decisions and waits until they can be read. */
    async score(...decisions: Partial<SessionScored>[]): Promise<void> {
      const events = decisions.map((decision) => sessionScored(decision))
      const records = events.map((data) =>
        codec.toRecord({ type: 'SessionScored', data }, metaOf(data)),
      )
      await applied.waitFor('sessions', await log.append(records), { timeoutMs: 20_000 })
    },
    async stop() {
      await app.close()
      await readPool.end()
      await running.stop()
      await applied.close()
      await log.close()
      await database.drop()
    },
  }
}

type Caused = Extract<DomainEvent, { type: 'VisitorErased' | 'VisitorSplit' }>

export type Readback = Awaited<ReturnType<typeof startReadback>>

interface Send {
  url: string
  method?: 'GET' | 'PATCH' | 'HEAD' | 'POST' | 'DELETE'
  key?: string
  body?: unknown
  headers?: Record<string, string>
}

async function send(app: FastifyInstance, { url, method = 'GET', key, body, headers: more }: Send) {
  const headers = {
    ...more,
    authorization: `Bearer ${key}`,
    ...(body !== undefined && { 'content-type': 'application/json' }),
  }
  const payload = body === undefined ? {} : { payload: JSON.stringify(body) }
  const response = await app.inject({ url, method, headers, ...payload })
  return {
    status: response.statusCode,
    headers: response.headers,
    body: method === 'HEAD' ? null : response.json(),
  }
}
