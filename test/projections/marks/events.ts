import type { DomainEvent } from '../../../infra/event-store/event.ts'
import type { MarkLabel } from '../../../schemas/events.ts'
import { sessionScored } from '../../support/session-scored.ts'
import { id } from '../world-events.ts'

export const scope = { organizationId: id('org', 1), environment: 'live' } as const

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
