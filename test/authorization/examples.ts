import { randomBytes } from 'node:crypto'
import { derivedHexId } from '../../infra/ids.ts'
import { addAgentDirectory } from '../../services/organizations/agent-directories.ts'
import { type Context, type Endpoint, keyed, type OpenEndpoint } from './endpoint.ts'
import { gateEndpoints, openGateEndpoints } from './gate-examples.ts'
import type { Person } from './person.ts'
import type { CollectBodies } from './record-collect.ts'

const organizationPath =
  (rest = '') =>
  ({ organizationId }: Context) =>
    `/v1/organizations/${organizationId}${rest}`

/** The path of something of the organization, which is a fresh one where the request ends it. */
const ownedPath =
  (path: (context: Context, options: { fresh: boolean }) => Promise<string>, ends = false) =>
  async (context: Context) =>
    organizationPath(await path(context, { fresh: ends && context.succeeds }))(context)

const keyPath = (rest = '', ends = true) =>
  ownedPath(async ({ keyId }, options) => `/api-keys/${await keyId(options)}${rest}`, ends)
const endpointPath = (rest = '', ends = false) =>
  ownedPath(async ({ webhook }, options) => {
    const { endpointId } = await webhook(options)
    return `/webhooks/endpoints/${endpointId}${rest}`
  }, ends)
const visitorPath = (rest = '', ends = false) =>
  ownedPath(
    async ({ person }, options) => `/visitors/${(await person(options)).visitorId}${rest}`,
    ends,
  )
const deliveryPath = (rest: string) =>
  ownedPath(async ({ webhook }, options) => {
    const { eventId, endpointId } = await webhook(options)
    const deliveryId = derivedHexId('wdlv', eventId, endpointId)
    return `/webhooks/deliveries/${deliveryId}${rest}`
  })
const alertPath = (ends = false) =>
  ownedPath(async ({ alertId }, options) => `/alerts/${await alertId(options)}`, ends)
const viewPath = (ends = false) =>
  ownedPath(async ({ viewId }, options) => `/views/${await viewId(options)}`, ends)
const userPath = (rest = '', ends = false) =>
  ownedPath(
    async ({ person }, options) => `/users/${(await person(options)).clientUserId}${rest}`,
    ends,
  )
const eventPath = ownedPath(
  async ({ webhook }, options) => `/events/${(await webhook(options)).eventId}`,
)

/** A path that names somebody's things. */
const personPath =
  (path: (person: Person) => string, ends = false) =>
  async ({ person, succeeds }: Context) =>
    path(await person({ fresh: ends && succeeds }))

const session = ({ sessionId }: Person) => `/v1/sessions/${sessionId}`

/** A correction of a visitor, of a fresh person where it is to succeed. */
function correction(
  name: 'splits' | 'merges',
  bodyOf: (person: Person) => { reason: string },
): Endpoint {
  return {
    scope: 'visitors:manage',
    success: 201,
    elsewhere: 404,
    async example(context) {
      const person = await context.person({ fresh: context.succeeds })
      const url = organizationPath(`/visitors/${person.visitorId}/${name}`)(context)
      return { method: 'POST', url, body: bodyOf(person) }
    },
  }
}

/** A request to collect that was recorded; a body is nothing to a key of another session. */
function recorded(name: keyof CollectBodies, elsewhere: number): Endpoint {
  const example: Endpoint['example'] = ({ bodies, platform }) => bodies[platform][name]
  return { success: 200, elsewhere, example }
}

const absent = { elsewhere: 404 }
const created = { success: 201, elsewhere: 201 }
const random = (size = 4) => randomBytes(size).toString('hex')
// Within the scopes of everyone who may make one.
const newKey = { name: 'New', type: 'secret', scopes: ['api_keys:manage'] }
const newEndpoint = {
  name: 'New',
  url: 'https://shop.example/',
  event_types: ['session.result.persisted'],
}
const renamed = { name: 'Renamed' }
const rotation = { ip: '8.8.8.8', proxy_provider: 'BYTEFUL', desired_country_code: 'DE' }
const edgeRequest = {
  method: 'GET',
  scheme: 'https',
  authority: 'shop.example',
  path: '/',
  headers: [['User-Agent', 'curl/8.14.1']],
  ip: '203.0.113.9',
}

/** A request for each operation that needs a key. */
export const endpoints: Record<string, Endpoint> = {
  listSessions: keyed('GET', '/v1/sessions', 'sessions:list'),
  countSessions: keyed('GET', '/v1/sessions/aggregates', 'sessions:list'),
  listSessionAnomalies: keyed('GET', '/v1/sessions/anomalies', 'sessions:list'),
  getSession: keyed('GET', personPath(session), 'sessions:read', absent),
  getScoringModel: keyed('GET', '/v1/scoring/model', 'sessions:read'),
  updateSession: keyed('PATCH', personPath(session, true), 'sessions:update', {
    ...absent,
    body: () => ({ client_user_id: `user_${random()}` }),
  }),
  markSessions: keyed('POST', '/v1/marks', 'sessions:mark', {
    success: 201,
    elsewhere: 422,
    body: async ({ person }) => ({
      label: 'bot',
      session_ids: [(await person({ fresh: false })).sessionId],
    }),
  }),
  deleteMark: keyed(
    'DELETE',
    personPath(({ markId }) => `/v1/marks/${markId}`, true),
    'sessions:mark',
    absent,
  ),
  listViews: keyed('GET', organizationPath('/views'), 'sessions:list'),
  createView: keyed('POST', organizationPath('/views'), 'views:manage', {
    ...created,
    body: () => ({ name: `View ${random()}`, query: 'verdict=bot' }),
  }),
  updateView: keyed('PATCH', viewPath(), 'views:manage', {
    ...absent,
    body: () => ({ name: `View ${random()}` }),
  }),
  deleteView: keyed('DELETE', viewPath(true), 'views:manage', absent),
  listAlerts: keyed('GET', organizationPath('/alerts'), 'sessions:list'),
  createAlert: keyed('POST', organizationPath('/alerts'), 'views:manage', {
    success: 201,
    elsewhere: 422,
    body: async ({ viewId }) => ({
      view_id: await viewId({ fresh: false }),
      kind: 'count',
      threshold: 60,
    }),
  }),
  updateAlert: keyed('PATCH', alertPath(), 'views:manage', {
    ...absent,
    body: () => ({ threshold: 70 }),
  }),
  deleteAlert: keyed('DELETE', alertPath(true), 'views:manage', absent),
  listVisitorFingerprints: keyed('GET', '/v1/fingerprints', 'fingerprints:list'),
  getVisitorFingerprint: keyed(
    'GET',
    personPath(({ visitorId }) => `/v1/fingerprints/${visitorId}`),
    'fingerprints:read',
    absent,
  ),
  splitVisitor: correction('splits', ({ sessionId }) => ({
    session_ids: [sessionId],
    reason: 'Two people.',
  })),
  mergeVisitors: correction('merges', ({ otherVisitorId }) => ({
    visitor_id: otherVisitorId,
    reason: 'One person.',
  })),
  eraseVisitor: keyed('DELETE', visitorPath('', true), 'visitors:erase', absent),
  eraseUser: keyed('DELETE', userPath('', true), 'visitors:erase', absent),
  eraseGateAccount: keyed(
    'DELETE',
    organizationPath(`/gate-accounts/gacct_${'0'.repeat(26)}`),
    'visitors:erase',
    { success: 404, ...absent },
  ),
  exportVisitor: keyed('GET', visitorPath('/export'), 'visitors:export', absent),
  exportUser: keyed('GET', userPath('/export'), 'visitors:export', absent),
  createOrganization: keyed('POST', '/v1/organizations', 'organizations:create', {
    ...created,
    body: () => ({ name: 'New', slug: `new-${random(6)}` }),
  }),
  getOrganization: keyed('GET', organizationPath(), 'organizations:read'),
  updateOrganization: keyed('PATCH', organizationPath(), 'organizations:update', {
    needsLive: 'people',
    body: renamed,
  }),
  listAgentDirectories: keyed('GET', organizationPath('/agent-directories'), 'organizations:read'),
  addAgentDirectory: keyed('POST', organizationPath('/agent-directories'), 'organizations:update', {
    needsLive: 'everyone',
    ...created,
    body: { domain: 'agent.example', name: 'Acme' },
  }),
  removeAgentDirectory: keyed(
    'DELETE',
    async (context) => {
      const { organizationId, world, succeeds } = context
      const domain = `${random()}.example`
      if (succeeds) await addAgentDirectory(world.deps, { organizationId, domain, by: 'operator' })
      return organizationPath(`/agent-directories/${domain}`)(context)
    },
    'organizations:update',
    { needsLive: 'everyone' },
  ),
  listOrganizationAuditLog: keyed('GET', organizationPath('/audit-log'), 'organizations:read'),
  listOrganizationApiKeys: keyed('GET', organizationPath('/api-keys'), 'api_keys:read'),
  createOrganizationApiKey: keyed('POST', organizationPath('/api-keys'), 'api_keys:manage', {
    ...created,
    body: newKey,
  }),
  updateOrganizationApiKey: keyed('PATCH', keyPath('', false), 'api_keys:manage', {
    ...absent,
    body: renamed,
  }),
  revokeOrganizationApiKey: keyed('DELETE', keyPath(), 'api_keys:manage', absent),
  rotateOrganizationApiKey: keyed('POST', keyPath('/rotations'), 'api_keys:manage', {
    success: 201,
    ...absent,
  }),
  listWebhookEndpoints: keyed('GET', organizationPath('/webhooks/endpoints'), 'webhooks:read'),
  createWebhookEndpoint: keyed('POST', organizationPath('/webhooks/endpoints'), 'webhooks:manage', {
    ...created,
    body: newEndpoint,
  }),
  updateWebhookEndpoint: keyed('PATCH', endpointPath(), 'webhooks:manage', {
    ...absent,
    body: renamed,
  }),
  disableWebhookEndpoint: keyed('DELETE', endpointPath('', true), 'webhooks:manage', absent),
  rotateWebhookEndpointSecret: keyed('POST', endpointPath('/rotations', true), 'webhooks:manage', {
    success: 201,
    ...absent,
  }),
  listWebhookDeliveries: keyed('GET', organizationPath('/webhooks/deliveries'), 'webhooks:read'),
  listWebhookAttempts: keyed('GET', deliveryPath('/attempts'), 'webhooks:read', absent),
  retryWebhookDelivery: keyed('POST', deliveryPath('/retry'), 'webhooks:manage', {
    success: 202,
    elsewhere: 404,
  }),
  resendWebhookDeliveries: keyed('POST', endpointPath('/resend'), 'webhooks:manage', {
    success: 202,
    elsewhere: 404,
    body: () => ({ since: new Date(Date.now() - 3_600_000).toISOString() }),
  }),
  sendTestWebhook: keyed('POST', endpointPath('/test'), 'webhooks:manage', {
    success: 202,
    ...absent,
  }),
  listEvents: keyed('GET', organizationPath('/events'), 'webhooks:read'),
  retrieveEvent: keyed('GET', eventPath, 'webhooks:read', absent),
  checkAgentIpRotation: keyed('POST', '/v1/agents/ip-rotation', 'agents:ip_rotation', {
    body: { items: [rotation] },
  }),
  scoreRequests: keyed('POST', '/v1/requests/score', 'requests:score', {
    body: { requests: [edgeRequest] },
  }),
  ...gateEndpoints,
  openCollectSession: recorded('open', 200),
  sendCollectBatch: recorded('batch', 410),
  handOffCollectSession: recorded('result', 410),
}

function get(url: string, success = 200): OpenEndpoint {
  return { success, example: () => ({ method: 'GET', url }) }
}

/** A request for each operation without a key, with its expected response. */
export const openEndpoints: Record<string, OpenEndpoint> = {
  getDescription: get('/openapi.json'),
  getLiveness: get('/livez'),
  getReadiness: get('/readyz'),
  getMetrics: get('/metrics'),
  getBrowserSdk: get('/t.js'),
  pingCollect: get('/v2/collect/pings/p1', 204),
  reportNetworkCheck: {
    example: () => ({ method: 'POST', url: '/v2/collect/network-checks', body: { ok: true } }),
    success: 202,
  },
  ...openGateEndpoints,
}
