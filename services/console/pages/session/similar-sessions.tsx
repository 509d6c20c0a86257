import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { hrefOf } from '../shared/address.ts'
import { FactList, Panel } from '../shared/panel.tsx'

/** Links to lists of sessions that share a visitor, user, network or browser with this one. */
export function SimilarSessions({ session }: { session: SessionDetail }) {
  const { network, browser, agent, visitor_fingerprint: visitor, client_user_id: user } = session
  const facts = {
    Visitor: sessionsLink('visitor_id', visitor?.id),
    User: sessionsLink('client_user_id', user),
    'IP address': sessionsLink('ip', network.ip_address),
    Network: sessionsLink('asn', network.routing.asn, network.routing.organization),
    Browser: sessionsLink('browser', browser.name),
    Agent: sessionsLink('agent_provider', agent.provider),
  }
  return (
    <Panel title="Similar sessions, last 30 days">
      <FactList facts={facts} />
    </Panel>
  )
}

function sessionsLink(filter: string, value: string | null | undefined, text?: string | null) {
  if (value === null || value === undefined) return null
  const query = new URLSearchParams({ [filter]: value, last: '30d' })
  return <a href={hrefOf({ page: 'sessions', query })}>{text ?? value}</a>
}
