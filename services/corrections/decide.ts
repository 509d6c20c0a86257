import { ApiError, invalidField } from '../../infra/errors/errors.ts'
import { type DecidedEvent, decidedEvent } from '../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { derivedId } from '../../infra/ids.ts'
import {
  reassignedAt,
  type SessionReassignment,
} from '../../projections/sessions/apply-reassignments.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'

export const maxSessionsPerCorrection = 1000

interface Correction {
  scope: DataScope
  reason: string
  /** Epoch milliseconds. */
  now: number
}

export interface SplitVisitor extends Correction {
  visitorId: string
  /** Distinct sessions of the visitor, to move to a new one. */
  sessionIds: string[]
}

export interface MergeVisitors extends Correction {
  /** Visitor that survives. */
  visitorId: string
  /** Visitor that loses all its sessions to the survivor. */
  mergedVisitorId: string
}

export interface SplitState {
  /** All sessions of the visitor. */
  sessions: string[]
  /** Sessions of the new visitor, if an earlier split moved the same sessions. */
  alreadySplit: string[]
}

/**
 * Throws 404 if the visitor has no session, 422 if a session is not the visitor's or none would remain. Returns no
 * events if the command is a repeat.
 */
export function decideSplit(
  { sessions, alreadySplit }: SplitState,
  command: SplitVisitor,
): DecidedEvent[] {
  const { visitorId, sessionIds, now: split_at } = command
  if (sessionIds.every((id) => alreadySplit.includes(id))) return []
  if (sessions.length === 0) throw noSuchVisitor()
  const foreign = sessionIds.find((id) => !sessions.includes(id))
  if (foreign !== undefined)
    throw invalidField({
      name: 'session_ids',
      issue: 'is not of this visitor',
      expected: 'must be sessions of this visitor',
      received: foreign,
    })
  if (sessionIds.length === sessions.length)
    throw invalidField({
      name: 'session_ids',
      issue: 'leaves the visitor no session',
      expected: 'must leave the visitor at least one session',
    })
  const newVisitorId = splitVisitorId(visitorId, sessionIds)
  const moves = sessionIds.map((session_id) => {
    const move = {
      session_id,
      visitor_id: newVisitorId,
      earlier_visitor_id: visitorId,
      cause: 'operator' as const,
      split_at,
    }
    return newReassignmentEvent({
      type: 'VisitorSplit',
      data: { ...commonMoveFields(move, command), ...move },
    })
  })
  const ids = { visitor_id: visitorId, other_visitor_id: newVisitorId }
  return [newCorrectionEvent(command, { kind: 'split', session_ids: sessionIds, ...ids }), ...moves]
}

/** Derives the new visitor's id from the sessions, so that a repeated split gets the same id. */
export const splitVisitorId = (visitorId: string, sessionIds: string[]): string =>
  derivedId('vid', 'split', visitorId, ...sessionIds.toSorted())

export interface MergeState {
  /** True if the surviving visitor has a session. */
  hasSurvivor: boolean
  /** Sessions of the merged visitor, at most `maxSessionsPerCorrection` + 1. */
  sessions: string[]
}

/** Throws 404 if either visitor has no session, 422 if they are the same or there are too many sessions. */
export function decideMerge(
  { hasSurvivor, sessions }: MergeState,
  command: MergeVisitors,
): DecidedEvent[] {
  const { visitorId, mergedVisitorId: mergedId, now: merged_at } = command
  if (visitorId === mergedId)
    throw invalidField({
      name: 'visitor_id',
      issue: 'is the visitor itself',
      expected: 'must differ from the visitor in the path',
      received: visitorId,
    })
  if (!hasSurvivor || sessions.length === 0) throw noSuchVisitor()
  if (sessions.length > maxSessionsPerCorrection) {
    const issue = `has more than ${maxSessionsPerCorrection} sessions; put it in the path and the other visitor here`
    throw invalidField({ name: 'visitor_id', issue, received: mergedId })
  }
  const moves = sessions.map((session_id) => {
    const move = { session_id, visitor_id: visitorId, earlier_visitor_id: mergedId, merged_at }
    return newReassignmentEvent({
      type: 'VisitorMerged',
      data: { ...commonMoveFields(move, command), ...move },
    })
  })
  const ids = { visitor_id: visitorId, other_visitor_id: mergedId }
  return [newCorrectionEvent(command, { kind: 'merge', session_ids: sessions, ...ids }), ...moves]
}

export const noSuchVisitor = () =>
  new ApiError('request.not_found', {
    message: 'No visitor with this id was observed in this environment.',
  })

type Move = Pick<SessionReassignment, 'session_id' | 'visitor_id' | 'earlier_visitor_id'>

// Returns the members common to VisitorSplit and VisitorMerged. Confidence is 100, because a person decided.
function commonMoveFields(
  { session_id, visitor_id, earlier_visitor_id }: Move,
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

function newReassignmentEvent(
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
type Details = Pick<
  CorrectedEvent['data'],
  'kind' | 'visitor_id' | 'other_visitor_id' | 'session_ids'
>

function newCorrectionEvent({ scope, reason, now }: Correction, details: Details): DecidedEvent {
  const { organizationId, environment } = scope
  const { visitor_id, other_visitor_id } = details
  const ids = { organization_id: organizationId, environment }
  const data = { ...ids, ...details, reason, corrected_at: now }
  const eventId = derivedId('evt', 'corrected', visitor_id, other_visitor_id, String(now))
  return decidedEvent(
    { type: 'VisitorCorrected', data },
    { organizationId, environment, eventId, now },
  )
}
