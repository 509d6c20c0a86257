import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { formatDateTime, formatDuration, inWords } from '../shared/format.ts'
import { Panel } from '../shared/panel.tsx'
import { DecisionBadge } from './score.tsx'

type Entry = NonNullable<SessionDetail['timeline']>[number]

/** The events of the session, oldest first, with the time since it opened. */
export function TimelineSection({ session }: { session: SessionDetail }) {
  const { timeline = [], decision, previous_decisions: previous } = session
  const decisions = new Map([decision, ...previous].map((made) => [made.event_id, made]))
  return (
    <Panel title="Timeline">
      <ol class="timeline">
        {timeline.map((entry) => {
          const made = decisions.get(entry.event_id ?? '')
          return (
            <li key={`${entry.kind} ${entry.at} ${entry.event_id ?? entry.value}`}>
              <time class="number hint" dateTime={entry.at} title={formatDateTime(entry.at)}>
                {offsetText(Date.parse(entry.at) - Date.parse(session.created_at))}
              </time>
              <span>
                {textOf(entry)} {made && <DecisionBadge {...made} />}
              </span>
            </li>
          )
        })}
      </ol>
    </Panel>
  )
}

const offsetText = (ms: number): string =>
  ms < 1000 ? `+${Math.max(0, ms)} ms` : `+${formatDuration(ms)}`

const decisionReasons: Record<string, string> = {
  first: 'First decision',
  changed: 'Decision changed',
  hand_off: 'Hand-off',
  idle: 'Session ended',
  looked_up: 'Agent looked up',
}

function textOf({ kind, value }: Entry): string {
  const texts: Record<Entry['kind'], string> = {
    opened: 'Session opened',
    document_opened: `Page opened: ${URL.parse(value ?? '')?.pathname ?? value}`,
    data_received: 'Data received',
    decided: decisionReasons[value ?? ''] ?? 'Decision',
    user_changed: value === null ? 'User removed' : `User attached: ${value}`,
    marked: `Labeled ${inWords(value ?? '')}`,
  }
  return texts[kind]
}
