import { ApiError, invalidField } from '../../infra/errors/errors.ts'
import { type DecidedEvent, eventAbout } from '../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { derivedId } from '../../infra/ids.ts'
import type { SessionMark } from '../../projections/sessions/marks.ts'
import type { Person } from '../../projections/sessions/person.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import type { MarkLabel } from '../../schemas/events.ts'

/** How many sessions one mark may have. */
export const maxMarked = 1000

export interface MarkCommand {
  scope: DataScope
  markId: string
  /** Epoch milliseconds. */
  now: number
}

export interface MarkSessions extends MarkCommand {
  label: MarkLabel
  reason: string | null
  /** Whose sessions; ids of sessions are distinct. */
  named: Person
}

export interface MarkState {
  /** The sessions that are named, or one more than can be marked. */
  sessions: string[]
  /** The newest mark of each. */
  marks: Map<string, SessionMark | null>
}

/**
 * Marks the sessions that are not marked so already. 422 where a session is unknown, or where there are too many; then
 * nothing is marked.
 */
export function decideMark({ sessions, marks }: MarkState, command: MarkSessions): DecidedEvent[] {
  refuseUnfit(sessions, command.named)
  const { markId: mark_id, label, reason, now } = command
  // A retry finds what the log took of the first attempt.
  const begun = [...marks.values()].find((mark) => mark?.id === mark_id)
  const marked_at = begun?.marked_at ?? now
  const changed = sessions.filter((id) => {
    const mark = marks.get(id)
    return mark?.label !== label || mark.reason !== reason
  })
  return changed.map((session_id) => {
    const about = {
      ...aboutSession(session_id, command),
      event_id: eventIdOf('marked', mark_id, session_id),
    }
    return decided({ type: 'SessionMarked', data: { ...about, mark_id, label, reason, marked_at } })
  })
}

/** `sessions` have the mark. 404 where none has. */
export function decideUnmark(sessions: string[], command: MarkCommand): DecidedEvent[] {
  if (sessions.length === 0) throw noSuchMark()
  const { markId: mark_id, now: unmarked_at } = command
  return sessions.map((session_id) => {
    const about = {
      ...aboutSession(session_id, command),
      event_id: eventIdOf('unmarked', mark_id, session_id),
    }
    return decided({ type: 'SessionUnmarked', data: { ...about, mark_id, unmarked_at } })
  })
}

export const noSuchMark = () =>
  new ApiError('request.not_found', { message: 'No mark with this id exists in this environment.' })

function refuseUnfit(sessions: string[], named: Person): void {
  if ('sessionIds' in named) {
    const known = new Set(sessions)
    const received = named.sessionIds.find((id) => !known.has(id))
    if (received !== undefined)
      throw invalidField({ name: 'session_ids', issue: 'not_found', received })
    return
  }
  const name = 'visitorId' in named ? 'visitor_id' : 'client_user_id'
  if (sessions.length === 0) throw invalidField({ name, issue: 'not_found' })
  if (sessions.length > maxMarked)
    throw invalidField({ name, issue: 'too_large', expected: `at most ${maxMarked} sessions` })
}

const eventIdOf = (what: 'marked' | 'unmarked', ...ids: string[]) => derivedId('evt', what, ...ids)

function aboutSession(session_id: string, { scope }: MarkCommand) {
  return { session_id, organization_id: scope.organizationId, environment: scope.environment }
}

function decided(
  event: Extract<DomainEvent, { type: 'SessionMarked' | 'SessionUnmarked' }>,
): DecidedEvent {
  const now = 'marked_at' in event.data ? event.data.marked_at : event.data.unmarked_at
  return eventAbout(event.data, event, { eventId: event.data.event_id, now })
}
