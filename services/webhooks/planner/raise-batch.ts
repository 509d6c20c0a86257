import { LRUCache } from 'lru-cache'
import type pg from 'pg'
import type { CaughtUp } from '../../../infra/event-store/catch-up.ts'
import type { EventCodec } from '../../../infra/event-store/codec.ts'
import { decidedEvent } from '../../../infra/event-store/decide.ts'
import type { EventLog, NewRecord } from '../../../infra/log/port.ts'
import { createBreather } from '../../../infra/timing.ts'
import { raisedEventIds, subscribedEndpoints } from '../../../projections/webhooks/queries.ts'
import type { Raised } from './raise.ts'

export interface RaiseDeps {
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  /** The webhooks read model. */
  caughtUp: Pick<CaughtUp, 'waitUntilCaughtUp' | 'isUnchanged'>
}

/** Appends those of the candidates that have not been raised; of those with one id, the first. */
export type RaiseBatch = (candidates: Raised[]) => Promise<void>

interface Seen {
  /** Ids of events that have been raised. */
  known: Set<string>
  subscribers: Map<string, string[]>
}

/** A session's decisions mostly follow each other within minutes; whoever is pushed out costs a look-up. */
const maxRemembered = 50_000

/**
 * An event must be raised once however often its decision is read, and must not be missed. Nothing here can see to the
 * first alone: the append and the consumer's offset are two commits, and a crash between them reads the decision again.
 * So the id follows from the session, and of an id the read model takes the first record, with the endpoints that it
 * names: a second one plans no delivery. What is dropped here only keeps such records rare, so a memory that is lost
 * does no harm.
 *
 * But the first record is final, whom it leaves out is never told. Whoever created an endpoint got the answer when the
 * read model showed it, so the subscriptions are complete unless the read model is still being filled or its database
 * went back: then nothing is raised until it has caught up.
 */
export function createRaiseBatch({ log, pool, codec, caughtUp }: RaiseDeps): RaiseBatch {
  const recent = new LRUCache<string, true>({ max: maxRemembered })

  async function encode(raised: Raised[], subscribers: Map<string, string[]>): Promise<NewRecord[]> {
    const breathe = createBreather()
    const records: NewRecord[] = []
    for (const event of raised) {
      records.push(recordOf(codec, event, subscribers.get(subscriptionOf(event)) ?? []))
      await breathe()
    }
    return records
  }

  async function look(unknown: Raised[]): Promise<Seen> {
    const identity = await caughtUp.waitUntilCaughtUp()
    const ids = unknown.map(({ event_id }) => event_id)
    const wanted = unknown.map(({ organization_id: organizationId, environment, type }) => ({
      organizationId,
      environment,
      type,
    }))
    const [known, subscribers] = await Promise.all([
      raisedEventIds(pool, ids),
      subscribedEndpoints(pool, wanted),
    ])
    // Asked last: the database may have gone back before what was just read.
    return (await caughtUp.isUnchanged(identity)) ? { known, subscribers } : look(unknown)
  }

  return async (candidates) => {
    const unknown = firstOfEach(candidates.filter(({ event_id }) => !recent.has(event_id)))
    if (unknown.length === 0) return
    const { known, subscribers } = await look(unknown)
    const records = await encode(
      unknown.filter(({ event_id }) => !known.has(event_id)),
      subscribers,
    )
    if (records.length > 0) await log.append(records)
    // Not before the log has it: an append that failed is made again.
    for (const { event_id } of unknown) recent.set(event_id, true)
  }
}

function firstOfEach(candidates: Raised[]): Raised[] {
  const first = new Map<string, Raised>()
  for (const raised of candidates) if (!first.has(raised.event_id)) first.set(raised.event_id, raised)
  return [...first.values()]
}

/** As `subscribedEndpoints` names it. */
const subscriptionOf = ({ organization_id, environment, type }: Raised) =>
  `${organization_id} ${environment} ${type}`

function recordOf(codec: EventCodec, raised: Raised, endpointIds: string[]): NewRecord {
  const { event_id: eventId, organization_id: organizationId, environment, created_at: now } = raised
  const data = { ...raised, endpoint_ids: endpointIds }
  const { event, meta } = decidedEvent(
    { type: 'WebhookEventRaised', data },
    { organizationId, environment, eventId, now },
  )
  return codec.toRecord(event, meta)
}
