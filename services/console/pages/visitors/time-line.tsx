import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { WhyVisitor } from '../session/why-visitor.tsx'
import { formatDuration } from '../shared/format.ts'
import { useLinkKeys } from '../shared/keys.ts'
import { type ListPages, NextPageButton } from '../shared/pages.tsx'
import { Panel } from '../shared/panel.tsx'
import { IdLink, RelativeTime, VerdictBadge } from '../shared/values.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { changesBetween, describeMatch } from './session-changes.ts'

interface Selection {
  selected: string[]
  /** Undefined if sessions cannot be selected. */
  onSelect: ((sessionIds: string[]) => void) | undefined
}

/** The visitor's sessions, newest first: verdict, match, and changes since the previous session. */
export function TimeLine({
  sessions,
  ...selection
}: Selection & { sessions: ListPages<SessionSummary> }) {
  const { first, rows } = sessions
  useLinkKeys('.time-line .mono')
  return (
    <Panel title="Sessions, newest first">
      <Loaded response={first}>
        {() => (
          <>
            {rows.length === 0 && <p class="hint">Sessions deleted by retention</p>}
            <ol class="time-line">
              {rows.map((row, i) => (
                <Entry key={row.id} row={row} previous={rows[i + 1]} {...selection} />
              ))}
            </ol>
            <NextPageButton {...sessions} />
          </>
        )}
      </Loaded>
    </Panel>
  )
}

interface EntryProps extends Selection {
  row: SessionSummary
  /** Undefined for the oldest loaded session. */
  previous: SessionSummary | undefined
}

function Entry({ row, previous, selected, onSelect }: EntryProps) {
  const { id, latest_decision: decision, facts, visitor_fingerprint: visitor } = row
  const toggle = () =>
    onSelect?.(selected.includes(id) ? selected.filter((other) => other !== id) : [...selected, id])
  return (
    <li>
      <VerdictBadge {...decision} />
      <div>
        <p class="row">
          {onSelect && (
            <input
              type="checkbox"
              checked={selected.includes(id)}
              onChange={toggle}
              aria-label={`Select ${id}`}
            />
          )}
          <IdLink id={id} />
          <RelativeTime at={decision.evaluated_at} />
          {facts && (
            <span>
              {facts.page_host}
              {facts.page_path}
            </span>
          )}
        </p>
        <p class="hint">{describeMatch(visitor)}</p>
        {previous && <ChangesSince previous={previous} row={row} />}
        <WhyVisitor sessionId={id} />
      </div>
    </li>
  )
}

function ChangesSince({ previous, row }: { previous: SessionSummary; row: SessionSummary }) {
  const timeOf = ({ latest_decision }: SessionSummary) => Date.parse(latest_decision.evaluated_at)
  const changes = changesBetween(previous, row)
  return (
    <p class="row">
      {formatDuration(timeOf(row) - timeOf(previous))} later{changes.length === 0 && ', no changes'}
      {changes.map(({ field, from, to }) => (
        <span key={field} class="badge warn">
          {field}: {from ?? 'none'} → {to ?? 'none'}
        </span>
      ))}
    </p>
  )
}
