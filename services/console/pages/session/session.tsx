import type { Verdict } from '../../../../schemas/events.ts'
import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { hrefOf } from '../shared/address.ts'
import { useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { CodeBlock } from '../shared/code-block.tsx'
import { formatDateTime, inWords } from '../shared/format.ts'
import { FactList, Panel } from '../shared/panel.tsx'
import { RelativeTime } from '../shared/relative-time.tsx'
import { ScrollRegion } from '../shared/scroll-region.tsx'
import { TableHead } from '../shared/table-head.tsx'
import { VerdictBadge } from '../shared/verdict.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { EvidenceSection } from './evidence.tsx'
import { LabelButtons } from './label-buttons.tsx'
import { RepeatsSection } from './repeats.tsx'
import { ScoreBreakdown } from './score.tsx'
import { SimilarSessions } from './similar-sessions.tsx'
import './session.css'
import { AttachUser } from './attach-user.tsx'
import { SessionContext } from './session-context.tsx'

export function SessionPage({ id }: { id: string }) {
  return (
    <>
      <p>
        <a href={hrefOf({ page: 'sessions' })}>Sessions</a>
      </p>
      <SessionView id={id} />
    </>
  )
}

const verdicts: Record<SessionDetail['decision']['automation_status'], Verdict> = {
  automated: 'bot',
  human: 'human',
  uncertain: 'inconclusive',
}

/** A session, as a page or beside the list. */
export function SessionView({ id }: { id: string }) {
  const path = `/v1/sessions/${encodeURIComponent(id)}?include=score&include=log`
  const response = useResponse<{ data: SessionDetail }>(path, { pollMs: 5000 })
  return (
    <>
      <Loaded response={response}>{({ data }) => <Session session={data} />}</Loaded>
      <ApiRequest paths={[path]} />
    </>
  )
}

function Session({ session }: { session: SessionDetail }) {
  const { decision, previous_decisions: previous, score, log } = session
  return (
    <article class="session">
      <SessionHeader session={session} />
      {score && <ScoreBreakdown session={session} score={score} />}
      <EvidenceSection session={session} />
      <SessionContext session={session} />
      <div class="columns">
        <RepeatsSection repeats={session.repeats} />
        <SimilarSessions session={session} />
      </div>
      <Decisions decisions={[decision, ...previous]} />
      <Panel title="Event log">
        <FactList
          facts={{
            Topic: log && <code>{log.topic}</code>,
            Partition: log?.partition,
            Offset: log?.offset,
            Event: <code>{decision.event_id}</code>,
          }}
        />
        <details>
          <summary>Raw JSON</summary>
          <CodeBlock code={JSON.stringify(session, null, 2)} />
        </details>
      </Panel>
    </article>
  )
}

function SessionHeader({ session }: { session: SessionDetail }) {
  const {
    id,
    decision,
    highlights,
    mark,
    client_user_id: user,
    visitor_fingerprint: visitor,
  } = session
  return (
    <header class="part">
      <h1>
        <VerdictBadge verdict={verdicts[decision.automation_status]} score={decision.risk_score} />
      </h1>
      <p class="mono">{id}</p>
      <p>
        {decision.decision_status} decision, <RelativeTime at={decision.evaluated_at} />,{' '}
        {visitor
          ? `${visitor.resolution.method?.endsWith('new') ? 'new' : 'known'} visitor`
          : 'no visitor'}
        {user ? (
          <>
            , user <bdi>{user}</bdi>
          </>
        ) : (
          ', no user'
        )}
        {mark && `, labeled ${inWords(mark.label)}`}
      </p>
      {highlights.length > 0 && (
        <ul>
          {highlights.map(({ key, summary }) => (
            <li key={key}>{summary}</li>
          ))}
        </ul>
      )}
      <LabelButtons sessionId={id} current={mark?.label ?? null} />
      <AttachUser sessionId={id} user={user} />
    </header>
  )
}

function Decisions({ decisions }: { decisions: SessionDetail['decision'][] }) {
  return (
    <Panel title="Decisions, newest first">
      <ScrollRegion label="Decisions">
        <table class="decisions">
          <TableHead columns={['When', 'Verdict', 'Status', 'Phase']} />
          <tbody>
            {decisions.map((decision) => (
              <tr key={decision.event_id}>
                <td>{formatDateTime(decision.evaluated_at)}</td>
                <td>
                  <VerdictBadge
                    verdict={verdicts[decision.automation_status]}
                    score={decision.risk_score}
                  />
                </td>
                <td>{decision.decision_status}</td>
                <td>{decision.evaluation_phase}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollRegion>
    </Panel>
  )
}
