import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { hrefOf } from '../shared/address.ts'
import { FactList, Panel } from '../shared/parts.tsx'

/** Links to lists of sessions that share a visitor, user, network or browser with this one. */
export function SimilarSessions({ session }: { session: SessionDetail }) {
  const { network, browser, agent, visitor_fingerprint: visitor, client_user_id: user } = session
  const facts = {
    Visitor: link('visitor_id', visitor?.id),
    User: link('client_user_id', user),
    'IP address': link('ip', network.ip_address),
    Network: link('asn', network.routing.asn, network.routing.organization),
    Browser: link('browser', browser.name),
    Agent: link('agent_provider', agent.provider),
  }
  return (
    <Panel title="Similar sessions, last 30 days">
      <FactList facts={facts} />
    </Panel>
  )
}

function link(filter: string, value: string | null | undefined, text?: string | null) {
  if (value === null || value === undefined) return null
  const query = new URLSearchParams({ [filter]: value, last: '30d' })
  return <a href={hrefOf({ page: 'sessions', query })}>{text ?? value}</a>
}
