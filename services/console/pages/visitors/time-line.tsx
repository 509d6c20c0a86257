import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { WhyVisitor } from '../session/why.tsx'
import { hrefOf } from '../shared/address.ts'
import { formatDuration, shortId } from '../shared/format.ts'
import { useLinkKeys } from '../shared/keys.ts'
import { NextPageButton } from '../shared/more.tsx'
import type { ListPages } from '../shared/pages.ts'
import { Panel } from '../shared/parts.tsx'
import { RelativeTime } from '../shared/time.tsx'
import { VerdictBadge } from '../shared/verdict.tsx'
import { Loaded } from '../shell/states.tsx'
import { changesBetween, linkInWords } from './links.ts'

interface TimeLineProps {
  sessions: ListPages<SessionSummary>
  /** Id of the form for selected sessions; null if they cannot be selected. */
  form: string | null
}

/** The visitor's sessions, newest first: verdict, match, and changes since the previous session. */
export function TimeLine({ sessions, form }: TimeLineProps) {
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
                <Entry key={row.id} row={row} before={rows[i + 1]} form={form} />
              ))}
            </ol>
            <NextPageButton {...sessions} />
          </>
        )}
      </Loaded>
    </Panel>
  )
}

interface EntryProps {
  row: SessionSummary
  /** Previous session; undefined for the oldest loaded one. */
  before: SessionSummary | undefined
  form: string | null
}

function Entry({ row, before, form }: EntryProps) {
  const { id, latest_decision: decision, facts, visitor_fingerprint: visitor } = row
  return (
    <li>
      <VerdictBadge verdict={decision.verdict} score={decision.risk_score} />
      <div>
        <p class="in-row">
          {form && (
            <input
              type="checkbox"
              form={form}
              name="session"
              value={id}
              aria-label={`Select ${id}`}
            />
          )}
          <a class="mono" href={hrefOf({ page: 'sessions', id })} title={id}>
            {shortId(id)}
          </a>
          <RelativeTime at={decision.evaluated_at} />
          {facts && (
            <span>
              {facts.page_host}
              {facts.page_path}
            </span>
          )}
        </p>
        <p class="hint">{linkInWords(visitor)}.</p>
        {before && <ChangesSince before={before} row={row} />}
        <WhyVisitor sessionId={id} />
      </div>
    </li>
  )
}

function ChangesSince({ before, row }: { before: SessionSummary; row: SessionSummary }) {
  const timeOf = ({ latest_decision }: SessionSummary) => Date.parse(latest_decision.evaluated_at)
  const changes = changesBetween(before, row)
  return (
    <p class="in-row">
      {formatDuration(timeOf(row) - timeOf(before))} later{changes.length === 0 && ', no changes'}
      {changes.map(({ member, from, to }) => (
        <span key={member} class="changed">
          {member}: {from ?? 'none'} → {to ?? 'none'}
        </span>
      ))}
    </p>
  )
}
