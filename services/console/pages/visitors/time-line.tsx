import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { WhyVisitor } from '../session/why.tsx'
import { hrefOf } from '../shared/address.ts'
import { lasting, short } from '../shared/format.ts'
import { useLinkKeys } from '../shared/keys.ts'
import { More } from '../shared/more.tsx'
import type { ListPages } from '../shared/pages.ts'
import { Panel } from '../shared/parts.tsx'
import { Time } from '../shared/time.tsx'
import { VerdictBadge } from '../shared/verdict.tsx'
import { Loaded } from '../shell/states.tsx'
import { changesBetween, linkInWords } from './links.ts'

interface TimeLineProps {
  sessions: ListPages<SessionSummary>
  /** Id of the form that the chosen sessions belong to; null where none can be chosen. */
  form: string | null
}

/** The visitor's sessions, newest first: the verdict of each, how it was linked, and what changed since the one before. */
export function TimeLine({ sessions, form }: TimeLineProps) {
  const { first, rows } = sessions
  useLinkKeys('.time-line .mono')
  return (
    <Panel title="Sessions, newest first">
      <Loaded answer={first}>
        {() => (
          <>
            {rows.length === 0 && <p class="hint">Its sessions have ended by retention.</p>}
            <ol class="time-line">
              {rows.map((row, i) => (
                <Entry key={row.id} row={row} before={rows[i + 1]} form={form} />
              ))}
            </ol>
            <More {...sessions} />
          </>
        )}
      </Loaded>
    </Panel>
  )
}

interface EntryProps {
  row: SessionSummary
  /** Undefined for the oldest one that was read. */
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
              aria-label={`Choose ${id}`}
            />
          )}
          <a class="mono" href={hrefOf({ page: 'sessions', id })} title={id}>
            {short(id)}
          </a>
          <Time at={decision.evaluated_at} />
          {facts && (
            <span>
              {facts.page_host}
              {facts.page_path}
            </span>
          )}
        </p>
        <p class="hint">{linkInWords(visitor)}.</p>
        {before && <Since before={before} row={row} />}
        <WhyVisitor sessionId={id} />
      </div>
    </li>
  )
}

function Since({ before, row }: { before: SessionSummary; row: SessionSummary }) {
  const timeOf = ({ latest_decision }: SessionSummary) => Date.parse(latest_decision.evaluated_at)
  const changes = changesBetween(before, row)
  return (
    <p class="in-row">
      {lasting(timeOf(row) - timeOf(before))} later{changes.length === 0 && ', with no change'}
      {changes.map(({ what, from, to }) => (
        <span key={what} class="changed">
          {what}: {from ?? 'none'} → {to ?? 'none'}
        </span>
      ))}
    </p>
  )
}
