import { ApiError, invalidField } from '../../infra/errors/errors.ts'
import { type DecidedEvent, decidedEvent } from '../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { derivedId } from '../../infra/ids.ts'
import {
  reassignedAt,
  type SessionReassignment,
} from '../../projections/sessions/apply-reassignments.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'

/** How many sessions one correction may have. */
export const maxReassigned = 1000

interface Correction {
  scope: DataScope
  /** In the operator's words. */
  reason: string
  /** Epoch milliseconds. */
  now: number
}

export interface SplitVisitor extends Correction {
  visitorId: string
  /** Distinct. They get a visitor of their own. */
  sessionIds: string[]
}

export interface MergeVisitors extends Correction {
  /** The visitor that stays. */
  visitorId: string
  /** The visitor whose sessions it gets. */
  otherId: string
}

export interface SplitState {
  /** All sessions of the visitor. */
  sessions: string[]
  /** Sessions that an earlier split with the same sessions gave to the new visitor. */
  parted: string[]
}

/** 404 where the visitor has no session, 422 where one is not of it or none is left. A repetition makes no event. */
export function decideSplit(
  { sessions, parted }: SplitState,
  command: SplitVisitor,
): DecidedEvent[] {
  const { visitorId: earlier_visitor_id, sessionIds, now: split_at } = command
  if (sessionIds.every((id) => parted.includes(id))) return []
  if (sessions.length === 0) throw noSuchVisitor()
  const missing = sessionIds.find((id) => !sessions.includes(id))
  if (missing !== undefined)
    throw invalidField({ name: 'session_ids', issue: 'is not of this visitor', received: missing })
  if (sessionIds.length === sessions.length)
    throw invalidField({ name: 'session_ids', issue: 'leaves the visitor no session' })
  const visitor_id = splitVisitorId(earlier_visitor_id, sessionIds)
  const reassigned = sessionIds.map((session_id) => {
    const between = {
      session_id,
      visitor_id,
      earlier_visitor_id,
      cause: 'operator' as const,
      split_at,
    }
    return decidedReassignment({
      type: 'VisitorSplit',
      data: { ...common(between, command), ...between },
    })
  })
  const between = { visitor_id: earlier_visitor_id, other_visitor_id: visitor_id }
  return [corrected(command, { kind: 'split', session_ids: sessionIds, ...between }), ...reassigned]
}

/** A repetition gives the same visitor. */
export const splitVisitorId = (visitorId: string, sessionIds: string[]): string =>
  derivedId('vid', 'split', visitorId, ...sessionIds.toSorted())

export interface MergeState {
  /** The visitor that stays has a session. */
  isKnown: boolean
  /** All sessions of the other, or one more than can be reassigned. */
  sessions: string[]
}

/** 404 where one of both has no session, 422 where both are the same or there are too many. */
export function decideMerger(
  { isKnown, sessions }: MergeState,
  command: MergeVisitors,
): DecidedEvent[] {
  const { visitorId: visitor_id, otherId: earlier_visitor_id, now: merged_at } = command
  if (visitor_id === earlier_visitor_id)
    throw invalidField({ name: 'visitor_id', issue: 'is the visitor itself', received: visitor_id })
  if (!isKnown || sessions.length === 0) throw noSuchVisitor()
  if (sessions.length > maxReassigned) {
    const issue = `has more than ${maxReassigned} sessions: name it in the path, and the other one here`
    throw invalidField({ name: 'visitor_id', issue, received: earlier_visitor_id })
  }
  const reassigned = sessions.map((session_id) => {
    const between = { session_id, visitor_id, earlier_visitor_id, merged_at }
    return decidedReassignment({
      type: 'VisitorMerged',
      data: { ...common(between, command), ...between },
    })
  })
  const between = { visitor_id, other_visitor_id: earlier_visitor_id }
  return [corrected(command, { kind: 'merge', session_ids: sessions, ...between }), ...reassigned]
}

export const noSuchVisitor = () =>
  new ApiError('request.not_found', {
    message: 'No visitor with this id was observed in this environment.',
  })

type Between = Pick<SessionReassignment, 'session_id' | 'visitor_id' | 'earlier_visitor_id'>

// An operator said so, hence the confidence.
function common(
  { session_id, visitor_id, earlier_visitor_id }: Between,
  { scope: { organizationId, environment }, now }: Correction,
) {
  const event_id = derivedId(
    'evt',
    'moved',
    session_id,
    earlier_visitor_id,
    visitor_id,
    String(now),
  )
  return { event_id, organization_id: organizationId, environment, confidence: 100 }
}

function decidedReassignment(
  event: Extract<DomainEvent, { type: 'VisitorSplit' | 'VisitorMerged' }>,
): DecidedEvent {
  const { organization_id: organizationId, environment, event_id: eventId } = event.data
  return decidedEvent(event, {
    organizationId,
    environment,
    eventId,
    now: reassignedAt(event.data),
  })
}

type CorrectedEvent = Extract<DomainEvent, { type: 'VisitorCorrected' }>
type Said = Pick<CorrectedEvent['data'], 'kind' | 'visitor_id' | 'other_visitor_id' | 'session_ids'>

function corrected({ scope, reason, now }: Correction, said: Said): DecidedEvent {
  const { organizationId, environment } = scope
  const data = { organization_id: organizationId, environment, ...said, reason, corrected_at: now }
  const eventId = derivedId('evt', 'corrected', said.visitor_id, said.other_visitor_id, String(now))
  return decidedEvent(
    { type: 'VisitorCorrected', data },
    { organizationId, environment, eventId, now },
  )
}
