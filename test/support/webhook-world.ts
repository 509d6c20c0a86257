import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { pino } from 'pino'
import { createCodec } from '../../infra/event-store/codec.ts'
import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { derivedId } from '../../infra/ids.ts'
import { openKafkaLog } from '../../infra/log/kafka/log.ts'
import type { EventLog } from '../../infra/log/port.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import type { SubscribableType } from '../../infra/wire/webhooks/events.ts'
import { type Environment, eventTopics } from '../../schemas/events.ts'
import { type Cluster, type ClusterOptions, type Owner, startCluster } from './cluster.ts'
import { eachBatch } from './each-batch.ts'
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

/** Servers that deliver nothing until `startDispatcher`, and the log and read model behind them. */
export interface WebhookWorld {
  cluster: Cluster
  log: EventLog
  pool: pg.Pool
  /** The first organization's live environment. */
  tenant: Tenant
  /** SIGKILL to all servers; the log and what was started by others stays. */
  endServers(): Promise<void>
  /** Another process with the role `webhooks`. */
  startDispatcher(): Promise<ServerProcess>
  /** Further tenants: `count` organizations, each in both environments. */
  tenants(count: number): Promise<Tenant[]>
  /** A REST request of the tenant below its organization; returns `data`, throws when the answer is not 2xx. */
  rest<Data>(tenant: Tenant, path: string, init?: { method: string; body?: unknown }): Promise<Data>
  createEndpoint(tenant: Tenant, endpoint: EndpointOptions): Promise<Endpoint>
  /** Appends final decisions as scoring would, one session each, and returns the sessions' ids. */
  score(tenant: Tenant, sessions: readonly string[]): Promise<void>
  deliveries(): Promise<Delivery[]>
  /** All events of the webhooks topic, in order within an event id. */
  history(): Promise<RecordedEvent[]>
  close(): Promise<void>
}

export interface EndpointOptions {
  url: string
  types: SubscribableType[]
}

export interface WebhookWorldOptions {
  log: ClusterOptions['log']
  env?: Record<string, string>
  /** Of the first process; default: all but `webhooks`. */
  roles?: string
}

/** The ids of sessions that follow from a text. */
export function sessionIds(text: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => derivedId('sid', text, String(i)))
}

export async function openWebhookWorld({
  log: kind,
  env = {},
  roles = 'collect,api,scoring,projections',
}: WebhookWorldOptions): Promise<WebhookWorld> {
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
  const { owner } = cluster
  const tenant: Tenant = { owner, environment: 'live', key: owner.secret.key }

  async function rest<Data>(
    { owner, key }: Tenant,
    path: string,
    init?: { method: string; body?: unknown },
  ) {
    const response = await cluster.fetch(0, `/v1/organizations/${owner.organizationId}${path}`, {
      method: init?.method ?? 'GET',
      headers: {
        authorization: `Bearer ${key}`,
        ...(init?.body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(init?.body !== undefined && { body: JSON.stringify(init.body) }),
    })
    const text = await response.text()
    if (!response.ok)
      throw new Error(`${init?.method ?? 'GET'} ${path}: ${response.status} ${text}`)
    const { data }: { data: Data } = JSON.parse(text)
    return data
  }

  async function inBothEnvironments(owner: Owner): Promise<Tenant[]> {
    const args = ['--name', 'Test', '--type', 'secret', '--scopes', '*', '--environment', 'test']
    const issued = await cluster.operate<{ revealed_key: string }>(
      'keys',
      'create',
      owner.slug,
      ...args,
    )
    return [
      { owner, environment: 'live', key: owner.secret.key },
      { owner, environment: 'test', key: issued.revealed_key },
    ]
  }

  return {
    cluster,
    log,
    pool,
    tenant,
    rest,
    async startDispatcher() {
      const server = await cluster.serve('webhooks')
      dispatchers.push(server)
      return server
    },
    async endServers() {
      await Promise.all([cluster.kill(0), ...dispatchers.map((server) => server.end('SIGKILL'))])
    },
    async tenants(count) {
      const owners = await Promise.all(Array.from({ length: count }, () => cluster.organization()))
      return (await Promise.all(owners.map(inBothEnvironments))).flat()
    },
    createEndpoint: (of, { url, types }) =>
      rest<Endpoint>(of, '/webhooks/endpoints', {
        method: 'POST',
        body: { name: 'Receiver', url, event_types: types },
      }),
    async score(of, sessions) {
      const events = sessions.map((sessionId) => decision(of, sessionId))
      await log.append(
        events.map((data) => codec.toRecord({ type: 'SessionScored', data }, metaOf(data))),
      )
    },
    deliveries: () => readDeliveries(pool),
    history: () => readTopic(log, eventTopics.WebhookEventRaised, codec),
    async close() {
      await log.close()
      await pool.end()
      await cluster.stop()
    },
  }
}

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

/** Every event of the topic up to its end as of now. */
async function readTopic(
  log: EventLog,
  topic: string,
  codec: ReturnType<typeof createCodec>,
): Promise<RecordedEvent[]> {
  const ends = (await log.endPositions(topic)).filter(({ offset }) => offset > 0)
  const unread = new Map(ends.map(({ partition, offset }) => [partition, offset]))
  const events: RecordedEvent[] = []
  if (unread.size === 0) return events
  const { promise: atEnd, resolve, reject } = Promise.withResolvers<void>()
  const consumer = await log.consume({
    group: `test-history-${randomBytes(6).toString('hex')}`,
    topics: [topic],
    startOffset: async () => 0,
    onError: reject,
    handle: eachBatch(({ partition, records }) => {
      events.push(...records.map(codec.fromRecord))
      if ((records.at(-1)?.offset ?? 0) + 1 >= (unread.get(partition) ?? 0))
        unread.delete(partition)
      if (unread.size === 0) resolve()
    }),
  })
  await atEnd.finally(() => consumer.stop())
  return events
}
