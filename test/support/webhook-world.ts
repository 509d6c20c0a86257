import type pg from 'pg'
import { pino } from 'pino'
import { createCodec } from '../../infra/event-store/codec.ts'
import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { derivedId } from '../../infra/ids.ts'
import { openKafkaLog } from '../../infra/log/kafka/log.ts'
import type { Batch, EventLog } from '../../infra/log/port.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { readTopicToEnd } from '../../infra/log/read-topic.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import type { SubscribableType } from '../../infra/wire/webhooks/events.ts'
import { type Environment, eventTopics } from '../../schemas/events.ts'
import { type Cluster, type ClusterOptions, type Owner, startCluster } from './cluster.ts'
import type { ServerProcess } from './server-process.ts'
import { metaOf, sessionScored, visitorLink } from './session-scored.ts'

/** Time-outs, retries and leases in fractions of a second; deliveries to this machine. */
export const fastWebhooks = {
  WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
  WEBHOOK_RETRY_SECONDS: '0,0.2,0.5,1,1,1,2,2,2,2',
  WEBHOOK_TIMEOUT_MS: '1000',
  WEBHOOK_LEASE_MS: '1500',
}
export const fastAttempts = fastWebhooks.WEBHOOK_RETRY_SECONDS.split(',').length

/** An organization as its keys of one environment see it. */
export interface Tenant {
  owner: Owner
  environment: Environment
  /** A secret key of that environment with all scopes. */
  key: string
}

export interface Endpoint {
  id: string
  signing_secret: string
}

/** A delivery as the read model has it. */
export interface Delivery {
  delivery_id: string
  event_id: string
  endpoint_id: string
  status: string
  attempts: number
}

interface EndpointOptions {
  url: string
  types: SubscribableType[]
}

interface WebhookWorldOptions {
  log: ClusterOptions['log']
  env?: Record<string, string>
  /** Of the first process; default: all but `webhooks`. */
  roles?: string
}

/** The ids of sessions that follow from a text. */
export function sessionIds(text: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => derivedId('sid', text, String(i)))
}

/** Servers that deliver nothing until `startDispatcher`, and the log and read model behind them. */
export async function openWebhookWorld({
  log: kind,
  env = {},
  roles = 'collect,api,scoring,projections',
}: WebhookWorldOptions) {
  const cluster = await startCluster({
    log: kind,
    processes: 1,
    roles,
    env: { ...fastWebhooks, ...env },
  })
  const pool = createPool({ url: cluster.settings.DATABASE_URL ?? '', max: 4 })
  const log = await openLog(cluster.settings, pool)
  const codec = createCodec()
  const dispatchers: ServerProcess[] = []

  /** A REST request of the tenant below its organization; returns `data`, throws when the answer is not 2xx. */
  async function rest<Data>(
    { owner, key }: Tenant,
    path: string,
    { method = 'GET', body }: { method?: string; body?: unknown } = {},
  ): Promise<Data> {
    const response = await cluster.fetch(0, `/v1/organizations/${owner.organizationId}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    const { data }: { data: Data } = JSON.parse(text)
    return data
  }

  return {
    cluster,
    log,
    pool,
    /** The first organization's live environment. */
    tenant: tenantOf(cluster.owner),
    rest,
    /** Another process with the role `webhooks`. */
    async startDispatcher(): Promise<ServerProcess> {
      const server = await cluster.serve('webhooks')
      dispatchers.push(server)
      return server
    },
    /** SIGKILL to all servers; the log and what was started by others stays. */
    async endServers(): Promise<void> {
      await Promise.all([cluster.kill(0), ...dispatchers.map((server) => server.end('SIGKILL'))])
    },
    /** Further organizations. */
    tenants: (count: number): Promise<Tenant[]> =>
      Promise.all(
        Array.from({ length: count }, async () => tenantOf(await cluster.organization())),
      ),
    createEndpoint: (of: Tenant, { url, types }: EndpointOptions) =>
      rest<Endpoint>(of, '/webhooks/endpoints', {
        method: 'POST',
        body: { name: 'Receiver', url, event_types: types },
      }),
    /** Appends final decisions as scoring would, one for each of the sessions. */
    async score(of: Tenant, sessions: readonly string[]): Promise<void> {
      const events = sessions.map((sessionId) => decision(of, sessionId))
      await log.append(
        events.map((data) => codec.toRecord({ type: 'SessionScored', data }, metaOf(data))),
      )
    },
    deliveries: () => readDeliveries(pool),
    /** All events of the webhooks topic, in order within an event id. */
    async history(): Promise<RecordedEvent[]> {
      const events: RecordedEvent[] = []
      const handle = (batches: Batch[]) =>
        void events.push(...batches.flatMap(({ records }) => records.map(codec.fromRecord)))
      await readTopicToEnd({ log, topic: eventTopics.WebhookEventRaised, handle })
      return events
    },
    async close(): Promise<void> {
      await log.close()
      await pool.end()
      await cluster.stop()
    },
  }
}

export type WebhookWorld = Awaited<ReturnType<typeof openWebhookWorld>>

const tenantOf = (owner: Owner): Tenant => ({
  owner,
  environment: 'live',
  key: owner.secret.key,
})

/** All deliveries that the read model of this database shows, by id. */
export async function readDeliveries(pool: pg.Pool): Promise<Delivery[]> {
  const { rows } = await pool.query<Delivery>(
    `select delivery_id, event_id, endpoint_id, status, attempts from read.webhook_deliveries
     order by delivery_id`,
  )
  return rows
}

/** A session's first and final decision, made now, with a visitor: two webhook events follow from it. */
function decision({ owner, environment }: Tenant, sessionId: string) {
  const now = Date.now()
  return sessionScored({
    event_id: derivedId('evt', 'decision', sessionId),
    session_id: sessionId,
    organization_id: owner.organizationId,
    environment,
    created_at: now - 1000,
    evaluated_at: now,
    is_provisional: false,
    phase: 'behavioral',
    visitor: visitorLink({ id: derivedId('vid', sessionId), identified_at: now }),
  })
}

function openLog(settings: Cluster['settings'], pool: pg.Pool): Promise<EventLog> {
  const {
    DATABASE_URL: url = '',
    KAFKA_BROKERS: brokers,
    KAFKA_TOPIC_PREFIX: topicPrefix = '',
  } = settings
  const logger = pino({ level: 'silent' })
  if (!brokers) return openPostgresLog({ pool, url, logger })
  return openKafkaLog({ brokers: brokers.split(','), topicPrefix, logger })
}
