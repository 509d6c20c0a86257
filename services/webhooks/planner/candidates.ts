import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import { webhookEventId } from '../../../infra/ids.ts'
import {
  type ReassignmentEvent,
  reassignedAt,
  reassignedEventId,
} from '../../../projections/sessions/apply-reassignments.ts'
import { eventTypesOf } from '../../../projections/sessions/projection.ts'
import type { SessionEventRow } from '../../../projections/sessions/session-events.ts'
import type { SessionEventType } from '../../../projections/sessions/tables.ts'
import type { Subscriber } from '../../../projections/webhooks/queries.ts'
import type { SessionScored } from '../../../schemas/events.ts'
import { isRecent, type Raised, raise, raiseAgain } from './raise.ts'

/** A webhook event that may be raised, and the decision that gave rise to it. */
export interface EventCandidate {
  id: string
  type: SessionEventType
  decision: Pick<SessionScored, 'event_id' | 'organization_id' | 'environment' | 'evaluated_at'>
  raise: (now: number) => Raised
  traceparent: string | undefined
}

/*
 * The stages of a candidate. A later one needs a look-up that the earlier ones save.
 *
 *   ┌─────────┐ who is subscribed  ┌────────────┐ was it raised before  ┌─────┐ appended
 *   │ pending │ ─────────────────▶ │ subscribed │ ────────────────────▶ │ due │ ─────────┐
 *   └────┬────┘                    └─────┬──────┘                       └─────┘          │
 *        │ nobody                        │ it was                                        │
 *        ▼                               ▼                                               │
 *   ┌──────────────┐               ┌─────────┐                                           │
 *   │ unsubscribed │ ────────────▶ │ settled │ ◀─────────────────────────────────────────┘
 *   └──────────────┘               └─────────┘
 */
export type CandidateStage =
  /** It is not known who is subscribed. */
  | { name: 'pending' }
  /** No endpoint is subscribed, so it is not raised: the first decision that gives rise to an event is final. */
  | { name: 'unsubscribed' }
  /** These endpoints are subscribed. It is not known whether it was raised before. */
  | { name: 'subscribed'; endpointIds: string[] }
  /** It is to be raised for these endpoints. */
  | { name: 'due'; endpointIds: string[] }
  /** It was raised, or nobody was subscribed at an earlier decision. */
  | { name: 'settled' }

type Subscribers = ReadonlyMap<string, Subscriber[]>

/** What is known of candidates. */
export interface Known {
  /** Ids of events. */
  settled: { has(id: string): boolean }
  /** Names of subscriptions that nobody has. */
  unsubscribed: { has(subscription: string): boolean }
  /** By the names of subscriptions; undefined = not looked up. */
  subscribers?: Subscribers
  /** Ids of events that were raised, or that nobody was subscribed to at an earlier decision. */
  raised?: ReadonlySet<string>
}

export function stageOf(candidate: EventCandidate, known: Known): CandidateStage {
  if (known.settled.has(candidate.id)) return { name: 'settled' }
  if (known.unsubscribed.has(subscriptionName(candidate))) return { name: 'unsubscribed' }
  if (!known.subscribers) return { name: 'pending' }
  const endpointIds = endpointsFor(candidate, known.subscribers)
  if (endpointIds.length === 0) return { name: 'unsubscribed' }
  if (!known.raised) return { name: 'subscribed', endpointIds }
  return known.raised.has(candidate.id) ? { name: 'settled' } : { name: 'due', endpointIds }
}

// By the clocks of two servers.
const clockDifferenceMs = 60_000

// None of the endpoints was made after the decision, which counts where the topic is read again.
function endpointsFor(candidate: EventCandidate, subscribers: Subscribers): string[] {
  const all = subscribers.get(subscriptionName(candidate)) ?? []
  const before = candidate.decision.evaluated_at + clockDifferenceMs
  return all.filter(({ created_at }) => created_at <= before).map(({ id }) => id)
}

export const subscriptionOf = ({ decision, type }: EventCandidate) => ({
  organizationId: decision.organization_id,
  environment: decision.environment,
  type,
})

// As `subscribedEndpoints` names it.
const subscriptionName = ({ decision, type }: EventCandidate): string =>
  `${decision.organization_id} ${decision.environment} ${type}`

export function candidatesOf(event: RecordedEvent, now: number): EventCandidate[] {
  // The session was erased, so nobody is notified of it.
  if (
    event.type !== 'SessionScored' ||
    event.unreadable !== undefined ||
    !isRecent(event.data, now)
  )
    return []
  const { data: scored, meta } = event
  return eventTypesOf(scored).map((type) => ({
    id: webhookEventId(type, scored.session_id),
    type,
    decision: scored,
    raise: (now) => raise(scored, type, now),
    traceparent: meta.traceparent,
  }))
}

/** The event of a session that was given another visitor: `row`, which the read model has since the reassignment. */
export function candidateOfReassignment(
  row: SessionEventRow,
  reassignment: ReassignmentEvent['data'],
): EventCandidate {
  const { organization_id, environment } = reassignment
  const decision = {
    organization_id,
    environment,
    evaluated_at: reassignedAt(reassignment),
    event_id: row.event_id,
  }
  return {
    id: row.id,
    type: row.type,
    decision,
    raise: () => raiseAgain(row, reassignment),
    traceparent: undefined,
  }
}

/** The ids of the events of reassignments, each with its reassignment. */
export const reassignmentsByEvent = (
  events: ReassignmentEvent[],
): Map<string, ReassignmentEvent['data']> =>
  new Map(events.map(({ data }) => [reassignedEventId(data), data]))

export function firstOfEach(candidates: EventCandidate[]): EventCandidate[] {
  const first = new Map<string, EventCandidate>()
  for (const candidate of candidates)
    if (!first.has(candidate.id)) first.set(candidate.id, candidate)
  return [...first.values()]
}
