import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { hrefOf } from '../shared/address.ts'
import { exact, inWords } from '../shared/format.ts'
import { FactList, Panel } from '../shared/parts.tsx'
import { WhyVisitor } from './why.tsx'

/** Who it was and why, by which program, from which network and device. */
export function Who({ session }: { session: SessionDetail }) {
  const { network, browser, device, request } = session
  const { location, routing, anonymity } = network
  const flags = Object.entries(anonymity).flatMap(([name, value]) =>
    value === true ? [inWords(name)] : [],
  )
  return (
    <div class="columns">
      <Visitor session={session} />
      <Panel title="Device">
        <FactList
          facts={{
            Browser: [browser.name, browser.version].filter(Boolean).join(' '),
            System: [device.operating_system.name, device.operating_system.version]
              .filter(Boolean)
              .join(' '),
            Form: device.form_factor,
            'User agent': request.user_agent,
            Page: request.url,
            Referrer: request.referrer,
          }}
        />
      </Panel>
      <Panel title="Network">
        <FactList
          facts={{
            Address: network.ip_address,
            From: [location?.city, location?.country_code].filter(Boolean).join(', '),
            Holder: routing.asn ? `AS${routing.asn} ${routing.organization ?? ''}` : null,
            Kind: flags.join(', '),
          }}
        />
      </Panel>
      <Agent agent={session.agent} />
    </div>
  )
}

function Agent({ agent }: Pick<SessionDetail, 'agent'>) {
  const { status, provider, product, purpose, method } = agent
  return (
    <Panel title="Agent">
      {status === 'none' ? (
        <p class="hint">It does not say that it is one.</p>
      ) : (
        <FactList
          facts={{
            Status: status,
            Operator: provider,
            Product: product,
            Purpose: purpose,
            By: method,
          }}
        />
      )}
    </Panel>
  )
}

function Visitor({ session: { id, visitor_fingerprint: visitor } }: { session: SessionDetail }) {
  if (!visitor) return <Panel title="Visitor">The session was linked to no visitor.</Panel>
  return (
    <Panel title="Visitor">
      <FactList
        facts={{
          Visitor: <a href={hrefOf({ page: 'visitors', id: visitor.id })}>{visitor.id}</a>,
          'Known by': [inWords(visitor.resolution.method ?? ''), visitor.resolution.basis]
            .filter(Boolean)
            .join(', '),
          Confidence: visitor.confidence === null ? null : `${visitor.confidence} %`,
          Sessions: visitor.lifecycle.seen_count,
          'First seen': visitor.lifecycle.first_seen_at && exact(visitor.lifecycle.first_seen_at),
        }}
      />
      <WhyVisitor sessionId={id} />
    </Panel>
  )
}
