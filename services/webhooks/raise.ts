import { type DecideAs, type DecidedEvent, decidedEvent } from '../../infra/event-store/decide.ts'
import { webhookEventId } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { findRaisedEventIds, findSubscribedEndpoints } from '../../projections/webhooks/queries.ts'
import { eventTopics } from '../../schemas/events.ts'
import type { Notice } from './events/schemas.ts'

type DueNotice = Notice & { endpointIds: string[] }

/** Raises the event, unless it was raised before or no endpoint is subscribed. Resolves to true if it was raised. */
export type Raise = (notice: Notice) => Promise<boolean>

export function createRaise({ decideAs }: { decideAs: DecideAs }): Raise {
  const decide = decideAs({ type: 'service', id: 'webhooks' })
  return async (notice) => {
    const eventId = eventIdOf(notice)
    const events = await decide({
      topic: eventTopics.WebhookEventRaised,
      projection: 'webhooks',
      key: eventId,
      locks: [`webhook-event:${eventId}`],
      // A read model that is still being filled lacks endpoints.
      alsoReads: [
        {
          projection: 'webhooks',
          topic: eventTopics.WebhookEndpointCreated,
          key: notice.organizationId,
        },
      ],
      load: (tx) => findDueNotices(tx, [notice]),
      decide: (due) => due.map(noticeEvent),
    })
    return events.length > 0
  }
}

/** Returns the notices that were not raised yet and have a subscribed endpoint. */
export async function findDueNotices(db: Db, notices: Notice[]): Promise<DueNotice[]> {
  if (notices.length === 0) return []
  const subscribers = await findSubscribedEndpoints(db, notices)
  const subscribed = notices.flatMap((notice) => {
    const { organizationId, environment, type, exceptEndpointId } = notice
    const endpoints = subscribers.get(`${organizationId} ${environment} ${type}`) ?? []
    const endpointIds = endpoints.map(({ id }) => id).filter((id) => id !== exceptEndpointId)
    return endpointIds.length === 0 ? [] : [{ ...notice, endpointIds }]
  })
  if (subscribed.length === 0) return []
  const raised = await findRaisedEventIds(db, subscribed.map(eventIdOf))
  return subscribed.filter((notice) => !raised.has(eventIdOf(notice)))
}

const eventIdOf = ({ type, occasion }: Notice) => webhookEventId(type, occasion)

export function noticeEvent(notice: DueNotice): DecidedEvent {
  const { organizationId, environment, type, subject, data, at, endpointIds } = notice
  const eventId = eventIdOf(notice)
  const event = {
    event_id: eventId,
    organization_id: organizationId,
    environment,
    type,
    subject_type: subject.type,
    subject_id: subject.id,
    data: JSON.stringify(data),
    created_at: at,
    endpoint_ids: endpointIds,
    route: 'queued',
  } as const
  return decidedEvent(
    { type: 'WebhookEventRaised', data: event },
    { organizationId, environment, eventId, now: at },
  )
}
