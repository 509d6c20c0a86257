import { ApiError, invalidField } from '../../infra/errors/errors.ts'
import { type DecidedEvent, eventAbout } from '../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { derivedId } from '../../infra/ids.ts'
import type { SessionMark } from '../../projections/sessions/marks.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import type { SessionSelector } from '../../projections/sessions/selected-sessions.ts'
import type { MarkLabel } from '../../schemas/events.ts'

export const maxSessionsPerMark = 1000

export interface MarkCommand {
  scope: DataScope
  markId: string
  /** Epoch milliseconds. */
  now: number
}

export interface MarkSessions extends MarkCommand {
  label: MarkLabel
  reason: string | null
  /** Sessions to mark; session ids must be distinct. */
  target: SessionSelector
}

export interface MarkState {
  /** Ids of the target's sessions, at most `maxSessionsPerMark` + 1. */
  sessions: string[]
  /** Newest mark of each session. */
  marks: Map<string, SessionMark | null>
}

/**
 * Returns an event for each session that does not have this label and reason yet. Throws 422 if a session is unknown or
 * there are too many.
 */
export function decideMark({ sessions, marks }: MarkState, command: MarkSessions): DecidedEvent[] {
  validateTarget(sessions, command.target)
  const { markId: mark_id, label, reason, now } = command
  // A retry uses the time of the first attempt, because some of its events may be on the log.
  const firstAttempt = [...marks.values()].find((mark) => mark?.id === mark_id)
  const marked_at = firstAttempt?.marked_at ?? now
  const changed = sessions.filter((id) => {
    const mark = marks.get(id)
    return mark?.label !== label || mark.reason !== reason
  })
  return changed.map((session_id) => {
    const ids = {
      ...sessionFields(session_id, command),
      event_id: eventIdOf('marked', mark_id, session_id),
    }
    return markEvent({ type: 'SessionMarked', data: { ...ids, mark_id, label, reason, marked_at } })
  })
}

/** Returns one event for each session that has the mark. Throws 404 if there are none. */
export function decideUnmark(sessions: string[], command: MarkCommand): DecidedEvent[] {
  if (sessions.length === 0) throw noSuchMark()
  const { markId: mark_id, now: unmarked_at } = command
  return sessions.map((session_id) => {
    const ids = {
      ...sessionFields(session_id, command),
      event_id: eventIdOf('unmarked', mark_id, session_id),
    }
    return markEvent({ type: 'SessionUnmarked', data: { ...ids, mark_id, unmarked_at } })
  })
}

export const noSuchMark = () =>
  new ApiError('request.not_found', { message: 'No mark with this id exists in this environment.' })

function validateTarget(sessions: string[], target: SessionSelector): void {
  if ('sessionIds' in target) {
    const existing = new Set(sessions)
    const received = target.sessionIds.find((id) => !existing.has(id))
    if (received !== undefined)
      throw invalidField({ name: 'session_ids', issue: 'not_found', received })
    return
  }
  const name = 'visitorId' in target ? 'visitor_id' : 'client_user_id'
  if (sessions.length === 0) throw invalidField({ name, issue: 'not_found' })
  if (sessions.length > maxSessionsPerMark)
    throw invalidField({
      name,
      issue: 'too_large',
      expected: `at most ${maxSessionsPerMark} sessions`,
    })
}

const eventIdOf = (kind: 'marked' | 'unmarked', ...ids: string[]) => derivedId('evt', kind, ...ids)

function sessionFields(session_id: string, { scope }: MarkCommand) {
  return { session_id, organization_id: scope.organizationId, environment: scope.environment }
}

function markEvent(
  event: Extract<DomainEvent, { type: 'SessionMarked' | 'SessionUnmarked' }>,
): DecidedEvent {
  const now = 'marked_at' in event.data ? event.data.marked_at : event.data.unmarked_at
  return eventAbout(event.data, event, { eventId: event.data.event_id, now })
}
