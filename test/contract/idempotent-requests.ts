import { generateDeliveryKeys } from '../../infra/wire/delivery-envelope.ts'
import { systemServiceId } from '../../infra/wire/gate.ts'
import { createEndpoint } from '../../services/webhooks/endpoints/commands.ts'
import type { World } from '../authorization/world.ts'

interface Asked {
  /** Of the path. */
  ids: Record<string, string>
  /** A key or a token. */
  token: string
  body?: object
}

/** What each operation is asked that takes an Idempotency-Key, by its id. */
export async function requestsOf(world: World): Promise<(operationId: string) => Asked> {
  const organizationId = await world.organization('idempotent')
  const { keyId } = await world.issue({ organizationId })
  const { revealedKey: token } = await world.issue({
    organizationId,
    type: 'secret',
    scopes: ['*'],
  })
  const { endpointId } = await world.webhook(organizationId)
  const ids = { organizationId, keyId, endpointId }
  const requests = {
    ...(await gateRequests(world, { organizationId, token })),
    ...(await correctionRequests(world, organizationId)),
    ...(await markRequests(world, organizationId)),
    ...keyedBodies(),
  }
  return (operationId) => ({ ids, token, ...requests[operationId] })
}

async function markRequests(
  world: World,
  organizationId: string,
): Promise<Record<string, Partial<Asked>>> {
  const { visitorId } = await world.person(organizationId)
  return { markSessions: { body: { label: 'bot', visitor_id: visitorId } } }
}

async function correctionRequests(
  { deps }: World,
  organizationId: string,
): Promise<Record<string, Partial<Asked>>> {
  const id = (prefix: string, number: number) => `${prefix}_${String(number).padStart(26, '0')}`
  const visitors = [1, 1, 2, 3].map((number) => id('vid', number))
  const sessions = visitors.map((_, number) => id('sid', number))
  await deps.readPool.query(
    `insert into scoring.links (session_id, visitor_id, organization_id, environment, linked_at, storage_key, keys)
     select session_id, visitor_id, $3, 'live', 1, session_id, ''
     from unnest($1::text[], $2::text[]) as linked (session_id, visitor_id)`,
    [sessions, visitors, organizationId],
  )
  const ids = (number: number) => ({ organizationId, visitorId: id('vid', number) })
  return {
    splitVisitor: {
      ids: ids(1),
      body: { session_ids: sessions.slice(0, 1), reason: 'Two people.' },
    },
    mergeVisitors: { ids: ids(2), body: { visitor_id: id('vid', 3), reason: 'One person.' } },
  }
}

function keyedBodies(): Record<string, Partial<Asked>> {
  const types = ['session.result.persisted']
  return {
    createOrganization: { body: { name: 'Twice', slug: 'twice' } },
    createOrganizationApiKey: { body: { name: 'Twice' } },
    addAgentDirectory: { body: { domain: 'agent.example' } },
    createWebhookEndpoint: {
      body: { name: 'Twice', url: 'https://shop.example/', event_types: types },
    },
  }
}

async function gateRequests(
  { gate, deps, service }: World,
  { organizationId, token }: { organizationId: string; token: string },
): Promise<Record<string, Partial<Asked>>> {
  const serviceId = await service(organizationId)
  const { id, pollToken, ackToken, agentToken = '' } = await gate.signUp(serviceId)
  const approved = await gate.open(systemServiceId)
  const { delivery } = generateDeliveryKeys()
  const about = {
    name: 'Approvals',
    url: 'https://shop.example/',
    event_types: ['gate.session.approved'],
  }
  const { endpointId } = await createEndpoint(deps, {
    organizationId,
    environment: 'live',
    ...about,
  })
  const definition = { name: 'Twice', description: 'Mail.', website: 'https://acme.example' }
  return {
    createManagedGateService: {
      body: { id: 'twice', ...definition, webhook_endpoint_id: endpointId },
    },
    createGateSession: { body: { service_id: serviceId, account_name: 'Twice', delivery } },
    approveGateSession: {
      ids: { gateSessionId: approved.id },
      body: await gate.approval(approved.id),
    },
    acknowledgeGateSessionDelivery: {
      ids: { gateSessionId: id },
      token: pollToken,
      body: { ack_token: ackToken },
    },
    claimGateSession: { ids: { gateSessionId: id }, token: pollToken, body: { code: '000 000' } },
    createGateLoginSession: { token: agentToken, body: { service_id: serviceId } },
    consumeGateLoginSessionCode: {
      token,
      body: { code: await gate.loginCode(serviceId, agentToken) },
    },
  }
}
