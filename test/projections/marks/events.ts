import { createCodec } from '../../../infra/event-store/codec.ts'
import type { DomainEvent, RecordedEvent } from '../../../infra/event-store/event.ts'
import type { MarkLabel } from '../../../schemas/events.ts'
import { testCause } from '../../support/projections.ts'
import { metaOf, sessionScored } from '../../support/session-scored.ts'

export const scope = {
  organizationId: `org_${'1'.padStart(26, '0')}`,
  environment: 'live',
} as const
export const id = (prefix: string, n: number) => `${prefix}_${String(n).padStart(26, '0')}`

const about = (session: number, event: string) => ({
  session_id: id('sid', session),
  organization_id: scope.organizationId,
  environment: scope.environment,
  event_id: event,
})

export const scored = (session: number, n = 0): DomainEvent => ({
  type: 'SessionScored',
  data: sessionScored({ ...about(session, `evt_${session}_${n}`), evaluated_at: 1000 + n }),
})

export const marked = (session: number, mark: number, label: MarkLabel = 'bot'): DomainEvent => ({
  type: 'SessionMarked',
  data: {
    ...about(session, `evt_marked_${session}_${mark}`),
    mark_id: id('mrk', mark),
    label,
    reason: mark % 2 === 0 ? null : `reason_${mark}`,
    marked_at: 2000 + mark,
  },
})

export const unmarked = (session: number, mark: number): DomainEvent => ({
  type: 'SessionUnmarked',
  data: {
    ...about(session, `evt_unmarked_${session}_${mark}`),
    mark_id: id('mrk', mark),
    unmarked_at: 3000 + mark,
  },
})

export function eventMeta({ data }: DomainEvent) {
  if ('event_id' in data && 'environment' in data) return metaOf(data)
  throw new Error('not an event of a session')
}

const codec = createCodec()
let offset = 0

export function recorded(event: DomainEvent): RecordedEvent {
  const position = { topic: 'tidegate.sessions.v1', partition: 0, offset: offset++ }
  return { ...event, meta: eventMeta(event), value: codec.encode(event, testCause), position }
}
