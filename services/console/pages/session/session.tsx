import type { Verdict } from '../../../../schemas/events.ts'
import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { hrefOf } from '../shared/address.ts'
import { useAnswer } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { CodeBlock } from '../shared/code-block.tsx'
import { exact, inWords } from '../shared/format.ts'
import { Head } from '../shared/head.tsx'
import { FactList, Panel } from '../shared/parts.tsx'
import { Scroll } from '../shared/scroll.tsx'
import { Time } from '../shared/time.tsx'
import { VerdictBadge } from '../shared/verdict.tsx'
import { Loaded } from '../shell/states.tsx'
import { Alike } from './alike.tsx'
import { Checked } from './checked.tsx'
import { Mark } from './mark.tsx'
import { RepeatsSection } from './repeats.tsx'
import { ScoreBreakdown } from './score.tsx'
import './session.css'
import { AttachUser } from './user.tsx'
import { Who } from './who.tsx'

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

const verdictOf: Record<SessionDetail['decision']['automation_status'], Verdict> = {
  automated: 'bot',
  human: 'human',
  uncertain: 'inconclusive',
}

/** One session, as a page or beside the list. */
export function SessionView({ id }: { id: string }) {
  const path = `/v1/sessions/${encodeURIComponent(id)}?include=score&include=log`
  const answer = useAnswer<{ data: SessionDetail }>(path, { everyMs: 5000 })
  return (
    <>
      <Loaded answer={answer}>{({ data }) => <Session session={data} />}</Loaded>
      <ApiRequest paths={[path]} />
    </>
  )
}

function Session({ session }: { session: SessionDetail }) {
  const { decision, previous_decisions: before, score, log } = session
  return (
    <article class="session">
      <Top session={session} />
      {score && <ScoreBreakdown session={session} score={score} />}
      <Checked session={session} />
      <Who session={session} />
      <div class="columns">
        <RepeatsSection repeats={session.repeats} />
        <Alike session={session} />
      </div>
      <Decisions decisions={[decision, ...before]} />
      <Panel title="On the log">
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

function Top({ session }: { session: SessionDetail }) {
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
        <VerdictBadge verdict={verdictOf[decision.automation_status]} score={decision.risk_score} />
      </h1>
      <p class="mono">{id}</p>
      <p>
        {decision.decision_status} decision, <Time at={decision.evaluated_at} />,{' '}
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
        {mark && `, marked as ${inWords(mark.label)}`}
      </p>
      {highlights.length > 0 && (
        <ul>
          {highlights.map(({ key, summary }) => (
            <li key={key}>{summary}</li>
          ))}
        </ul>
      )}
      <Mark sessionId={id} marked={mark?.label ?? null} />
      <AttachUser sessionId={id} user={user} />
    </header>
  )
}

function Decisions({ decisions }: { decisions: SessionDetail['decision'][] }) {
  return (
    <Panel title="Decisions, newest first">
      <Scroll label="Decisions">
        <table class="decisions">
          <Head columns={['When', 'Verdict', 'Status', 'Phase']} />
          <tbody>
            {decisions.map((one) => (
              <tr key={one.event_id}>
                <td>{exact(one.evaluated_at)}</td>
                <td>
                  <VerdictBadge verdict={verdictOf[one.automation_status]} score={one.risk_score} />
                </td>
                <td>{one.decision_status}</td>
                <td>{one.evaluation_phase}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Panel>
  )
}
