import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { formatDateTime, inWords } from '../shared/format.ts'
import { FactPanel } from '../shared/panel.tsx'
import { WhyVisitor } from './why-visitor.tsx'

// Some names are paths, such as `network.anonymity.vpn`.
const wordsOf = (names: string[]) =>
  names.map((name) => inWords(name.slice(name.lastIndexOf('.') + 1))).join(', ')
const trueNames = (flags: Record<string, unknown>) =>
  wordsOf(Object.keys(flags).filter((name) => flags[name] === true))

/** Everything else about the session: match, device, connection, agent and evidence. */
export function SessionContext({ session }: { session: SessionDetail }) {
  const { network, device, request, connection_fingerprint: connection, agent } = session
  const { evidence, analysis_coverage: coverage } = session
  const { ja4, http2 } = connection
  const { visitor_fingerprint: visitor } = session
  const firstSeen = visitor?.lifecycle.first_seen_at
  return (
    <div class="columns">
      <FactPanel
        title="Visitor"
        facts={{
          'Matched by': visitor?.resolution.method && inWords(visitor.resolution.method),
          Basis: visitor?.resolution.basis,
          Confidence: visitor?.confidence == null ? null : `${visitor.confidence} %`,
          Sessions: visitor?.lifecycle.seen_count,
          'First seen': firstSeen && formatDateTime(firstSeen),
        }}
      >
        {visitor && <WhyVisitor sessionId={session.id} />}
      </FactPanel>
      <FactPanel
        title="Connection and agent"
        facts={{
          'Network type': trueNames(network.anonymity),
          JA4: ja4.hash && <code>{ja4.hash}</code>,
          Client: [ja4.product ?? ja4.family, http2.profile].filter(Boolean).join(', '),
          Agent: agent.status === 'none' ? 'none declared' : inWords(agent.status),
          Operator: agent.provider,
          Product: agent.product,
          Purpose: agent.purpose,
          'Verified by': agent.method && inWords(agent.method),
        }}
      />
      <FactPanel
        title="Device"
        facts={{
          'User agent': request.user_agent,
          'Device type': device.form_factor,
          Screen: device.screen.size,
          'Time zone': device.locale.timezone,
          Languages: device.locale.languages.join(', '),
          Page: request.url,
          Referrer: request.referrer,
        }}
      />
      <FactPanel
        title="Evidence"
        facts={{
          Received: trueNames(coverage),
          Sources: wordsOf(evidence.sources),
          'Reported by the app only': wordsOf(evidence.claimed),
          Missing: wordsOf(
            Object.keys(coverage).filter((name) => Object(coverage)[name] === false),
          ),
          'Not checked': wordsOf(evidence.unchecked),
          'Not sent': wordsOf(evidence.missing),
          Withheld: evidence.withheld
            .map(({ group, reason }) => `${group} (${inWords(reason)})`)
            .join(', '),
          'Impossible in a browser': evidence.impossible.join(', '),
        }}
      />
    </div>
  )
}
