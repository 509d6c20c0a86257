import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { hrefOf } from '../shared/address.ts'
import { formatDateTime, inWords } from '../shared/format.ts'
import { FactList, Panel } from '../shared/panel.tsx'
import { WhyVisitor } from './why-visitor.tsx'

export function SessionContext({ session }: { session: SessionDetail }) {
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
            'Device type': device.form_factor,
            'User agent': request.user_agent,
            Page: request.url,
            Referrer: request.referrer,
          }}
        />
      </Panel>
      <Panel title="Network">
        <FactList
          facts={{
            'IP address': network.ip_address,
            Location: [location?.city, location?.country_code].filter(Boolean).join(', '),
            ASN: routing.asn ? `AS${routing.asn} ${routing.organization ?? ''}` : null,
            Type: flags.join(', '),
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
        <p class="hint">No agent declared</p>
      ) : (
        <FactList
          facts={{
            Status: status,
            Operator: provider,
            Product: product,
            Purpose: purpose,
            Method: method,
          }}
        />
      )}
    </Panel>
  )
}

function Visitor({ session: { id, visitor_fingerprint: visitor } }: { session: SessionDetail }) {
  if (!visitor) return <Panel title="Visitor">No visitor</Panel>
  return (
    <Panel title="Visitor">
      <FactList
        facts={{
          Visitor: <a href={hrefOf({ page: 'visitors', id: visitor.id })}>{visitor.id}</a>,
          'Matched by': [inWords(visitor.resolution.method ?? ''), visitor.resolution.basis]
            .filter(Boolean)
            .join(', '),
          Confidence: visitor.confidence === null ? null : `${visitor.confidence} %`,
          Sessions: visitor.lifecycle.seen_count,
          'First seen':
            visitor.lifecycle.first_seen_at && formatDateTime(visitor.lifecycle.first_seen_at),
        }}
      />
      <WhyVisitor sessionId={id} />
    </Panel>
  )
}
