import type pg from 'pg'
import { createCodec } from '../../infra/event-store/codec.ts'
import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { derivedId } from '../../infra/ids.ts'
import { readTopicToEnd } from '../../infra/log/read-topic.ts'
import { eventTopics } from '../../schemas/events.ts'
import { type ClusterOptions, type Owner, startCluster } from './cluster.ts'
import { metaOf, sessionScored, visitorLink } from './session-scored.ts'

/** Settings with timeouts, retries and leases of less than a second, and deliveries to this machine. */
export const fastWebhooks = {
  WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
  WEBHOOK_RETRY_SECONDS: '0,0.2,0.5,1,1,1,2,2,2,2',
  WEBHOOK_TIMEOUT_MS: '1000',
  WEBHOOK_LEASE_MS: '1500',
}
export const fastAttempts = fastWebhooks.WEBHOOK_RETRY_SECONDS.split(',').length

/** Delivery in the read model. */
export interface Delivery {
  delivery_id: string
  event_id: string
  endpoint_id: string
  status: string
  attempts: number
}

/** Derives session ids from a text. */
export function sessionIds(text: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => derivedId('sid', text, String(i)))
}

const codec = createCodec()

/** Starts a server that delivers nothing until another one has the role `webhooks`. */
export async function openWebhookWorld({
  env = {},
  roles = 'collect,api,scoring,projections',
  log,
}: Pick<ClusterOptions, 'log' | 'env' | 'roles'>) {
  const cluster = await startCluster({ log, roles, env: { ...fastWebhooks, ...env } })
  return {
    cluster,
    pool: cluster.pool,
    /** First organization. */
    tenant: cluster.owner,
    createEndpoint: cluster.createEndpoint,
    startDispatcher: () => cluster.serve('webhooks'),
    /** Appends a final decision for each of the sessions, like scoring. */
    async score(of: Owner, sessions: readonly string[]): Promise<void> {
      const events = sessions.map((sessionId) => decision(of, sessionId))
      const log = await cluster.log()
      await log.append(
        events.map((data) => codec.toRecord({ type: 'SessionScored', data }, metaOf(data))),
      )
    },
    deliveries: () => readDeliveries(cluster.pool),
    /** Returns all events of the webhooks topic, in order within an event id. */
    async history(): Promise<RecordedEvent[]> {
      const events: RecordedEvent[] = []
      await readTopicToEnd({
        log: await cluster.log(),
        topic: eventTopics.WebhookEventRaised,
        handle: (batches) =>
          void events.push(...batches.flatMap(({ records }) => records.map(codec.fromRecord))),
      })
      return events
    },
    close: cluster.stop,
  }
}

export type WebhookWorld = Awaited<ReturnType<typeof openWebhookWorld>>

/** Returns all deliveries in the read model, ordered by id. */
export async function readDeliveries(pool: pg.Pool): Promise<Delivery[]> {
  const { rows } = await pool.query<Delivery>(
    `select delivery_id, event_id, endpoint_id, status, attempts from read.webhook_deliveries
     order by delivery_id`,
  )
  return rows
}

/** Returns a session's first and final decision, with a visitor, which raises two webhook events. */
function decision({ organizationId }: Owner, sessionId: string) {
  const now = Date.now()
  return sessionScored({
    event_id: derivedId('evt', 'decision', sessionId),
    session_id: sessionId,
    organization_id: organizationId,
    environment: 'live',
    created_at: now - 1000,
    evaluated_at: now,
    is_provisional: false,
    phase: 'behavioral',
    visitor: visitorLink({ id: derivedId('vid', sessionId), identified_at: now }),
  })
}
