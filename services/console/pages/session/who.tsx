import { useState } from 'preact/hooks'
import { hrefOf } from '../shared/address.ts'
import { useAnswer } from '../shared/api.ts'
import { exact, inWords, short } from '../shared/format.ts'
import { Facts, Part } from '../shared/parts.tsx'
import type { ApiIdentification, ApiSession, One } from '../shared/types.ts'
import { Loaded } from '../shell/states.tsx'

/** Who it was and why, by which program, from which network and device. */
export function Who({ session }: { session: ApiSession }) {
  const { network, browser, device, request } = session
  const { location, routing, anonymity } = network
  const flags = Object.entries(anonymity ?? {}).flatMap(([name, value]) =>
    value === true ? [inWords(name)] : [],
  )
  return (
    <div class="columns">
      <Visitor session={session} />
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
      <Agent agent={session.agent} />
    </div>
  )
}

function Agent({ agent }: Pick<ApiSession, 'agent'>) {
  const { status = 'none', provider, product, purpose, method } = agent ?? {}
  return (
    <Part title="Agent">
      {status === 'none' ? (
        <p class="hint">{agent ? 'It does not say that it is one.' : 'Nobody looked for one.'}</p>
      ) : (
        <Facts
          facts={{ Status: status, Operator: provider, Product: product, Purpose: purpose, By: method }}
        />
      )}
    </Part>
  )
}

function Visitor({ session: { id, visitor_fingerprint: visitor } }: { session: ApiSession }) {
  const [asks, setAsks] = useState(false)
  if (!visitor) return <Part title="Visitor">The session was linked to no visitor.</Part>
  const query = new URLSearchParams({ visitor_id: visitor.id })
  return (
    <Part title="Visitor">
      <Facts
        facts={{
          Visitor: <a href={hrefOf({ page: 'sessions', query })}>{visitor.id}</a>,
          'Known by': [inWords(visitor.resolution.method ?? ''), visitor.resolution.basis]
            .filter(Boolean)
            .join(', '),
          Confidence: visitor.confidence === null ? null : `${visitor.confidence} %`,
          Sessions: visitor.lifecycle.seen_count,
          'First seen': visitor.lifecycle.first_seen_at && exact(visitor.lifecycle.first_seen_at),
        }}
      />
      <details onToggle={({ currentTarget }) => setAsks(currentTarget.open)}>
        <summary>Why this visitor</summary>
        {asks && <Why sessionId={id} />}
      </details>
    </Part>
  )
}

function Why({ sessionId }: { sessionId: string }) {
  const answer = useAnswer<One<{ identification: ApiIdentification | null }>>(
    `/v1/sessions/${sessionId}?include=identification`,
  )
  return (
    <Loaded answer={answer}>
      {({ data: { identification } }) =>
        identification ? <Because {...identification} /> : <p class="hint">It is not known any more.</p>
      }
    </Loaded>
  )
}

const reasons: Record<string, string> = {
  kept_id: 'The browser kept an id that it was given before.',
  install_id: 'The app kept an id that it was given before.',
  look: 'The machine looks as before.',
  correction: 'A split or a merger gave the session its visitor.',
  doubt: 'There was a candidate, and nothing was sure, so it is a new visitor.',
  nobody_before: 'Nobody looked like it before, so it is a new visitor.',
}

function Because({ decided_by: by, bits_needed: needed, chosen, next }: ApiIdentification) {
  const bits = (value: number | null) => (value === null ? 'no bits' : `${value.toFixed(1)} bits`)
  return (
    <>
      <p>{reasons[by] ?? inWords(by)}</p>
      {(chosen || next) && (
        <Facts
          facts={{
            Evidence: chosen && bits(chosen.bits),
            Needed: needed === null ? null : bits(needed),
            'Next candidate':
              next && `${short(next.visitor_id)}, ${bits(next.bits)}: ${inWords(next.lost_because)}`,
          }}
        />
      )}
    </>
  )
}
