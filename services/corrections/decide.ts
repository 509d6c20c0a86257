import { ApiError, invalidField } from '../../infra/errors/errors.ts'
import { type DecidedEvent, decidedEvent } from '../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { derivedId } from '../../infra/ids.ts'
import {
  reassignedAt,
  type SessionReassignment,
} from '../../projections/sessions/apply-reassignments.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'

/** Maximum number of sessions that one correction moves. */
export const maxReassigned = 1000

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
  /** Sessions of the new visitor, which an earlier split with the same sessions moved. */
  alreadySplit: string[]
}

/**
 * 404 when the visitor has no session, 422 when a session is not the visitor's or none would remain. A repeated command
 * makes no event.
 */
export function decideSplit(
  { sessions, alreadySplit }: SplitState,
  command: SplitVisitor,
): DecidedEvent[] {
  const { visitorId: earlier_visitor_id, sessionIds, now: split_at } = command
  if (sessionIds.every((id) => alreadySplit.includes(id))) return []
  if (sessions.length === 0) throw noSuchVisitor()
  const foreign = sessionIds.find((id) => !sessions.includes(id))
  if (foreign !== undefined)
    throw invalidField({
      name: 'session_ids',
      issue: 'is not of this visitor',
      received: foreign,
    })
  if (sessionIds.length === sessions.length)
    throw invalidField({
      name: 'session_ids',
      issue: 'leaves the visitor no session',
    })
  const visitor_id = splitVisitorId(earlier_visitor_id, sessionIds)
  const reassigned = sessionIds.map((session_id) => {
    const move = {
      session_id,
      visitor_id,
      earlier_visitor_id,
      cause: 'operator' as const,
      split_at,
    }
    return decidedReassignment({
      type: 'VisitorSplit',
      data: { ...moveMembers(move, command), ...move },
    })
  })
  const ids = { visitor_id: earlier_visitor_id, other_visitor_id: visitor_id }
  return [corrected(command, { kind: 'split', session_ids: sessionIds, ...ids }), ...reassigned]
}

/** Returns the new visitor's id, derived from the sessions, so that a repeated split gets the same one. */
export const splitVisitorId = (visitorId: string, sessionIds: string[]): string =>
  derivedId('vid', 'split', visitorId, ...sessionIds.toSorted())

export interface MergeState {
  /** The surviving visitor has a session. */
  hasSurvivor: boolean
  /** Sessions of the merged visitor, at most `maxReassigned` + 1. */
  sessions: string[]
}

/** 404 when either visitor has no session, 422 when they are the same or there are too many sessions. */
export function decideMerge(
  { hasSurvivor, sessions }: MergeState,
  command: MergeVisitors,
): DecidedEvent[] {
  const { visitorId: visitor_id, mergedVisitorId: earlier_visitor_id, now: merged_at } = command
  if (visitor_id === earlier_visitor_id)
    throw invalidField({
      name: 'visitor_id',
      issue: 'is the visitor itself',
      received: visitor_id,
    })
  if (!hasSurvivor || sessions.length === 0) throw noSuchVisitor()
  if (sessions.length > maxReassigned) {
    const issue = `has more than ${maxReassigned} sessions: name it in the path, and the other one here`
    throw invalidField({ name: 'visitor_id', issue, received: earlier_visitor_id })
  }
  const reassigned = sessions.map((session_id) => {
    const move = { session_id, visitor_id, earlier_visitor_id, merged_at }
    return decidedReassignment({
      type: 'VisitorMerged',
      data: { ...moveMembers(move, command), ...move },
    })
  })
  const ids = { visitor_id, other_visitor_id: earlier_visitor_id }
  return [corrected(command, { kind: 'merge', session_ids: sessions, ...ids }), ...reassigned]
}

export const noSuchVisitor = () =>
  new ApiError('request.not_found', {
    message: 'No visitor with this id was observed in this environment.',
  })

type Move = Pick<SessionReassignment, 'session_id' | 'visitor_id' | 'earlier_visitor_id'>

// Returns the members that VisitorSplit and VisitorMerged share. Confidence is 100, because a person decided.
function moveMembers(
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
type CorrectionDetails = Pick<
  CorrectedEvent['data'],
  'kind' | 'visitor_id' | 'other_visitor_id' | 'session_ids'
>

function corrected({ scope, reason, now }: Correction, details: CorrectionDetails): DecidedEvent {
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
