import type pg from 'pg'
import { type DecideAs, decidedEvent } from '../../infra/event-store/decide.ts'
import { processDueItems } from '../../infra/flow/due-items.ts'
import { runPeriodically } from '../../infra/flow/periodic.ts'
import { type Clock, webhookEventId } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { findExpiringKeys } from '../../projections/organizations/queries.ts'
import type { ApiKeyRow } from '../../projections/organizations/tables.ts'
import { iso } from '../../projections/sessions/decision-json.ts'
import { findRaisedEventIds, findSubscribedEndpoints } from '../../projections/webhooks/queries.ts'
import { eventTopics, type WebhookEventRaised } from '../../schemas/events.ts'
import type { KeyExpiring } from './events/schemas.ts'

interface KeyExpiryOptions {
  pool: pg.Pool
  decideAs: DecideAs
  clock: Clock
  logger: Logger
}

const type = 'key.expiring'

/** Raises `key.expiring` for keys that expire soon. Any number of processes may run this; one works at a time. */
export function runKeyExpiryNotifier(options: KeyExpiryOptions): { stop(): Promise<void> } {
  return runPeriodically({
    intervalMs: 60_000,
    work: async () => (await raiseKeyExpiries(options)) > 0,
    onError: (err) => options.logger.error({ err }, 'failed to raise key.expiring; retrying'),
  })
}

/** Returns the number of events raised. Each expiry of a key is raised once, if an endpoint is subscribed. */
export function raiseKeyExpiries({ pool, decideAs, clock }: KeyExpiryOptions): Promise<number> {
  const decide = decideAs({ type: 'scheduler', id: 'key-expiry' })
  return processDueItems(pool, 'key-expiry-notifier', {
    findDue: async (tx, limit) => (await findDueEvents(tx, clock())).slice(0, limit),
    async work(event) {
      const { event_id: eventId, organization_id: organizationId, environment, created_at } = event
      const events = await decide({
        topic: eventTopics.WebhookEventRaised,
        projection: 'webhooks',
        key: eventId,
        locks: [`webhook-event:${eventId}`],
        load: (tx) => findRaisedEventIds(tx, [eventId]),
        decide: (raised) =>
          raised.has(eventId)
            ? []
            : [
                decidedEvent(
                  { type: 'WebhookEventRaised', data: event },
                  { organizationId, environment, eventId, now: created_at },
                ),
              ],
      })
      return events.length > 0
    },
  })
}

async function findDueEvents(db: Db, now: number): Promise<WebhookEventRaised[]> {
  const events = (await findExpiringKeys(db, now)).map((key) => expiryEventOf(key, now))
  if (events.length === 0) return []
  const raised = await findRaisedEventIds(
    db,
    events.map(({ event_id }) => event_id),
  )
  const subscribers = await findSubscribedEndpoints(
    db,
    events.map(({ organization_id: organizationId, environment }) => ({
      organizationId,
      environment,
      type,
    })),
  )
  return events.flatMap((event) => {
    const { event_id, organization_id, environment } = event
    const endpoints = subscribers.get(`${organization_id} ${environment} ${type}`) ?? []
    if (raised.has(event_id) || endpoints.length === 0) return []
    return [{ ...event, endpoint_ids: endpoints.map(({ id }) => id) }]
  })
}

/** Builds the event for a key with an expiry, without endpoints. */
export function expiryEventOf(key: ApiKeyRow, now: number): WebhookEventRaised {
  const { id, organization_id, environment, name, key_preview } = key
  const expiresAt = iso(key.expires_at ?? 0)
  const payload: KeyExpiring = {
    object: 'api_key_expiry',
    key: { id, type: key.type, name, key_preview, expires_at: expiresAt },
  }
  return {
    event_id: webhookEventId(type, `${id} ${expiresAt}`),
    organization_id,
    environment,
    type,
    subject_type: 'api_key',
    subject_id: id,
    data: JSON.stringify(payload),
    created_at: now,
    endpoint_ids: [],
    route: 'queued',
  }
}
