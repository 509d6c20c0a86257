import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import { webhookEventId } from '../../../infra/ids.ts'
import {
  type ReassignmentEvent,
  reassignedAt,
  reassignedEventId,
} from '../../../projections/sessions/apply-reassignments.ts'
import { raisedEventTypes } from '../../../projections/sessions/projection.ts'
import type { SessionEventRow } from '../../../projections/sessions/session-events.ts'
import type { SessionEventType } from '../../../projections/sessions/tables.ts'
import type { Subscriber } from '../../../projections/webhooks/queries.ts'
import type { SessionScored } from '../../../schemas/events.ts'
import {
  buildDecisionEvent,
  buildReassignmentEvent,
  isWithinRetention,
  type NewWebhookEvent,
} from './build-events.ts'

/** Webhook event that may have to be raised. */
export interface EventCandidate {
  id: string
  type: SessionEventType
  /** Decision that the event is about. */
  decision: Pick<
    SessionScored,
    'event_id' | 'organization_id' | 'environment' | 'evaluated_at' | 'verdict' | 'risk_score'
  >
  build: (now: number) => NewWebhookEvent
  traceparent: string | undefined
}

// Between the clocks of two servers.
const maxClockSkewMs = 60_000

/**
 * Returns the ids of the subscribed endpoints whose filter accepts the decision. Excludes endpoints that were created
 * after it, because a replay of the topic must not notify them.
 */
export function endpointsFor(
  candidate: EventCandidate,
  subscribers: ReadonlyMap<string, Subscriber[]>,
): string[] {
  const latest = candidate.decision.evaluated_at + maxClockSkewMs
  return (subscribers.get(subscriptionName(candidate)) ?? [])
    .filter(({ created_at, filter }) => created_at <= latest && isAccepted(candidate, filter))
    .map(({ id }) => id)
}

function isAccepted({ decision }: EventCandidate, filter: Subscriber['filter']): boolean {
  if (filter?.verdicts && !filter.verdicts.includes(decision.verdict)) return false
  return decision.risk_score >= (filter?.min_risk_score ?? 0)
}

export const subscriptionOf = ({ decision, type }: EventCandidate) => ({
  organizationId: decision.organization_id,
  environment: decision.environment,
  type,
})

/** Returns the key of the subscription in the result of `findSubscribedEndpoints`. */
export const subscriptionName = ({ decision, type }: EventCandidate): string =>
  `${decision.organization_id} ${decision.environment} ${type}`

/** Returns the webhook events of a decision; none for an erased session, whose events are unreadable. */
export function candidatesOf(event: RecordedEvent, now: number): EventCandidate[] {
  if (
    event.type !== 'SessionScored' ||
    event.unreadable !== undefined ||
    !isWithinRetention(event.data, now)
  )
    return []
  const { data: scored, meta } = event
  return raisedEventTypes(scored).map((type) => ({
    id: webhookEventId(type, scored.session_id),
    type,
    decision: scored,
    build: (now) => buildDecisionEvent(scored, type, now),
    traceparent: meta.traceparent,
  }))
}

/** Returns the webhook event of a session whose visitor was corrected. `row`: the session after the reassignment. */
export function candidateOfReassignment(
  row: SessionEventRow,
  reassignment: ReassignmentEvent['data'],
): EventCandidate {
  const { organization_id, environment } = reassignment
  const decision = {
    ...row,
    organization_id,
    environment,
    evaluated_at: reassignedAt(reassignment),
  }
  return {
    id: row.id,
    type: row.type,
    decision,
    build: () => buildReassignmentEvent(row, reassignment),
    traceparent: undefined,
  }
}

/** Returns the reassignments by the id of their webhook event. */
export const reassignmentsByEventId = (
  events: ReassignmentEvent[],
): Map<string, ReassignmentEvent['data']> =>
  new Map(events.map(({ data }) => [reassignedEventId(data), data]))

/** Returns the first candidate of each id. */
export function dedupeById(candidates: EventCandidate[]): EventCandidate[] {
  const first = new Map<string, EventCandidate>()
  for (const candidate of candidates)
    if (!first.has(candidate.id)) first.set(candidate.id, candidate)
  return [...first.values()]
}
