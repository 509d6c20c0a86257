import { hrefOf } from '../shared/address.ts'
import { useAnswer } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { CodeBlock } from '../shared/code-block.tsx'
import { exact, inWords } from '../shared/format.ts'
import { Head } from '../shared/head.tsx'
import { Facts, Part } from '../shared/parts.tsx'
import { Time } from '../shared/time.tsx'
import type { ApiDecision, ApiSession, One, VerdictName } from '../shared/types.ts'
import { VerdictBadge } from '../shared/verdict.tsx'
import { Loaded } from '../shell/states.tsx'
import { Mark } from './mark.tsx'
import { Why } from './why.tsx'

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

const verdictOf: Record<ApiDecision['automation_status'], VerdictName> = {
  automated: 'bot',
  human: 'human',
  uncertain: 'inconclusive',
}

/** One session, as a page or beside the list. */
export function SessionView({ id }: { id: string }) {
  const path = `/v1/sessions/${encodeURIComponent(id)}`
  const answer = useAnswer<One<ApiSession>>(path, { everyMs: 5000 })
  return (
    <>
      <Loaded answer={answer}>{({ data }) => <Session session={data} reload={answer.reload} />}</Loaded>
      <ApiRequest paths={[path]} />
    </>
  )
}

function Session({ session, reload }: { session: ApiSession; reload: () => void }) {
  const { decision, highlights, mark, client_user_id: user } = session
  return (
    <article class="session">
      <header>
        <h1>
          <VerdictBadge verdict={verdictOf[decision.automation_status]} score={decision.risk_score} />
        </h1>
        <p class="mono">{session.id}</p>
        <p>
          {decision.decision_status} decision, <Time at={decision.evaluated_at} />
          {user && `, user ${user}`}
          {mark && `, marked as ${inWords(mark.label)}`}
        </p>
        <Mark sessionId={session.id} marked={mark?.label ?? null} done={reload} />
      </header>
      {highlights.length > 0 && (
        <Part title="In words">
          <ul>
            {highlights.map(({ key, summary }) => (
              <li key={key}>{summary}</li>
            ))}
          </ul>
        </Part>
      )}
      <Why session={session} />
      <Who session={session} />
      <Decisions decisions={[decision, ...session.previous_decisions]} />
      <Unchecked session={session} />
      <Part title="Raw JSON">
        <details>
          <summary>All members</summary>
          <CodeBlock code={JSON.stringify(session, null, 2)} />
        </details>
      </Part>
    </article>
  )
}

function Who({ session }: { session: ApiSession }) {
  const { agent, network, visitor_fingerprint: visitor, browser, device, request } = session
  const { location, routing, anonymity } = network
  const flags = Object.entries(anonymity ?? {}).flatMap(([name, value]) =>
    value === true ? [inWords(name)] : [],
  )
  return (
    <div class="columns">
      <Part title="Network">
        <Facts
          facts={{
            Address: network.ip_address,
            From: [location?.city, location?.country_code].filter(Boolean).join(', '),
            Holder: routing?.asn ? `AS${routing.asn} ${routing.organization ?? ''}` : null,
            Kind: flags.join(', '),
          }}
        />
      </Part>
      <Part title="Device">
        <Facts
          facts={{
            Browser: [browser.name, browser.version].filter(Boolean).join(' '),
            System: [device.operating_system.name, device.operating_system.version].filter(Boolean).join(' '),
            Form: device.form_factor,
            'User agent': request.user_agent,
            Page: request.url,
            Referrer: request.referrer,
          }}
        />
      </Part>
      <Part title="Visitor">
        {visitor ? (
          <Facts
            facts={{
              Visitor: (
                <a
                  href={hrefOf({ page: 'sessions', query: new URLSearchParams({ visitor_id: visitor.id }) })}
                >
                  {visitor.id}
                </a>
              ),
              'Known by': [visitor.resolution.method, visitor.resolution.basis].filter(Boolean).join(', '),
              Confidence: visitor.confidence === null ? null : `${visitor.confidence} %`,
              Sessions: visitor.lifecycle.seen_count,
              'First seen': visitor.lifecycle.first_seen_at && exact(visitor.lifecycle.first_seen_at),
            }}
          />
        ) : (
          <p class="hint">The session was linked to no visitor.</p>
        )}
      </Part>
      {agent && agent.status !== 'none' && (
        <Part title="Agent">
          <Facts
            facts={{
              Status: agent.status,
              Operator: agent.provider,
              Product: agent.product,
              Purpose: agent.purpose,
              By: agent.method,
            }}
          />
        </Part>
      )}
    </div>
  )
}

function Decisions({ decisions }: { decisions: ApiDecision[] }) {
  return (
    <Part title="Decisions">
      <table>
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
    </Part>
  )
}

function Unchecked({ session: { evidence, analysis_coverage: coverage } }: { session: ApiSession }) {
  const not = Object.entries(coverage).flatMap(([name, seen]) => (seen === false ? [inWords(name)] : []))
  return (
    <Part title="What was not looked at">
      <Facts
        facts={{
          'No data of': not.join(', '),
          'Nothing consulted for': evidence.unchecked.join(', '),
          'Not sent': evidence.missing.join(', '),
          Withheld: evidence.withheld.map(({ group, reason }) => `${group} (${reason})`).join(', '),
          'No browser has': evidence.impossible.join(', '),
        }}
      />
    </Part>
  )
}
