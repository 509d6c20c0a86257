import { randomBytes } from 'node:crypto'
import { addAgentDirectory } from '../../services/organizations/agent-directories.ts'
import { type Context, type Endpoint, keyedEndpoint, type OpenEndpoint } from './endpoint.ts'
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

/** One for each operation that needs a key. */
export const endpoints: Record<string, Endpoint> = {
  listSessions: keyedEndpoint('GET', '/v1/sessions', { scope: 'sessions:list' }),
  countSessions: keyedEndpoint('GET', '/v1/sessions/aggregates', { scope: 'sessions:list' }),
  getSession: keyedEndpoint('GET', personPath(session), { scope: 'sessions:read', ...absent }),
  getScoringModel: keyedEndpoint('GET', '/v1/scoring/model', { scope: 'sessions:read' }),
  updateSession: keyedEndpoint('PATCH', personPath(session, true), {
    scope: 'sessions:update',
    ...absent,
    body: () => ({ client_user_id: `user_${random()}` }),
  }),
  markSessions: keyedEndpoint('POST', '/v1/marks', {
    scope: 'sessions:mark',
    success: 201,
    elsewhere: 422,
    body: async ({ person }) => ({
      label: 'bot',
      session_ids: [(await person({ fresh: false })).sessionId],
    }),
  }),
  deleteMark: keyedEndpoint(
    'DELETE',
    personPath(({ markId }) => `/v1/marks/${markId}`, true),
    { scope: 'sessions:mark', ...absent },
  ),
  listVisitorFingerprints: keyedEndpoint('GET', '/v1/fingerprints', { scope: 'fingerprints:list' }),
  getVisitorFingerprint: keyedEndpoint(
    'GET',
    personPath(({ visitorId }) => `/v1/fingerprints/${visitorId}`),
    { scope: 'fingerprints:read', ...absent },
  ),
  splitVisitor: correction('splits', ({ sessionId }) => ({
    session_ids: [sessionId],
    reason: 'Two people.',
  })),
  mergeVisitors: correction('merges', ({ otherVisitorId }) => ({
    visitor_id: otherVisitorId,
    reason: 'One person.',
  })),
  eraseVisitor: keyedEndpoint('DELETE', visitorPath('', true), {
    scope: 'visitors:erase',
    ...absent,
  }),
  eraseUser: keyedEndpoint('DELETE', userPath('', true), { scope: 'visitors:erase', ...absent }),
  eraseGateAccount: keyedEndpoint(
    'DELETE',
    organizationPath(`/gate-accounts/gacct_${'0'.repeat(26)}`),
    {
      scope: 'visitors:erase',
      success: 404,
      ...absent,
    },
  ),
  exportVisitor: keyedEndpoint('GET', visitorPath('/export'), {
    scope: 'visitors:export',
    ...absent,
  }),
  exportUser: keyedEndpoint('GET', userPath('/export'), { scope: 'visitors:export', ...absent }),
  createOrganization: keyedEndpoint('POST', '/v1/organizations', {
    scope: 'organizations:create',
    success: 201,
    elsewhere: 201,
    body: () => ({ name: 'New', slug: `new-${random(6)}` }),
  }),
  getOrganization: keyedEndpoint('GET', organizationPath(), { scope: 'organizations:read' }),
  updateOrganization: keyedEndpoint('PATCH', organizationPath(), {
    scope: 'organizations:update',
    needsLive: 'people',
    body: renamed,
  }),
  listAgentDirectories: keyedEndpoint('GET', organizationPath('/agent-directories'), {
    scope: 'organizations:read',
  }),
  addAgentDirectory: keyedEndpoint('POST', organizationPath('/agent-directories'), {
    scope: 'organizations:update',
    needsLive: 'everyone',
    success: 201,
    elsewhere: 201,
    body: { domain: 'agent.example', name: 'Acme' },
  }),
  removeAgentDirectory: keyedEndpoint(
    'DELETE',
    async (context) => {
      const { organizationId, world, succeeds } = context
      const domain = `${random()}.example`
      if (succeeds) await addAgentDirectory(world.deps, { organizationId, domain, by: 'operator' })
      return organizationPath(`/agent-directories/${domain}`)(context)
    },
    { scope: 'organizations:update', needsLive: 'everyone' },
  ),
  listOrganizationAuditLog: keyedEndpoint('GET', organizationPath('/audit-log'), {
    scope: 'organizations:read',
  }),
  listOrganizationApiKeys: keyedEndpoint('GET', organizationPath('/api-keys'), {
    scope: 'api_keys:read',
  }),
  createOrganizationApiKey: keyedEndpoint('POST', organizationPath('/api-keys'), {
    scope: 'api_keys:manage',
    success: 201,
    elsewhere: 201,
    body: newKey,
  }),
  updateOrganizationApiKey: keyedEndpoint('PATCH', keyPath('', false), {
    scope: 'api_keys:manage',
    ...absent,
    body: renamed,
  }),
  revokeOrganizationApiKey: keyedEndpoint('DELETE', keyPath(), {
    scope: 'api_keys:manage',
    ...absent,
  }),
  rotateOrganizationApiKey: keyedEndpoint('POST', keyPath('/rotations'), {
    scope: 'api_keys:manage',
    success: 201,
    ...absent,
  }),
  listWebhookEndpoints: keyedEndpoint('GET', organizationPath('/webhooks/endpoints'), {
    scope: 'webhooks:read',
  }),
  createWebhookEndpoint: keyedEndpoint('POST', organizationPath('/webhooks/endpoints'), {
    scope: 'webhooks:manage',
    success: 201,
    elsewhere: 201,
    body: newEndpoint,
  }),
  updateWebhookEndpoint: keyedEndpoint('PATCH', endpointPath(), {
    scope: 'webhooks:manage',
    ...absent,
    body: renamed,
  }),
  disableWebhookEndpoint: keyedEndpoint('DELETE', endpointPath('', true), {
    scope: 'webhooks:manage',
    ...absent,
  }),
  rotateWebhookEndpointSecret: keyedEndpoint('POST', endpointPath('/rotations', true), {
    scope: 'webhooks:manage',
    success: 201,
    ...absent,
  }),
  sendTestWebhook: keyedEndpoint('POST', endpointPath('/test'), {
    scope: 'webhooks:manage',
    success: 202,
    ...absent,
  }),
  listEvents: keyedEndpoint('GET', organizationPath('/events'), { scope: 'webhooks:read' }),
  retrieveEvent: keyedEndpoint('GET', eventPath, { scope: 'webhooks:read', ...absent }),
  checkAgentIpRotation: keyedEndpoint('POST', '/v1/agents/ip-rotation', {
    scope: 'agents:ip_rotation',
    body: { items: [rotation] },
  }),
  scoreRequests: keyedEndpoint('POST', '/v1/requests/score', {
    scope: 'requests:score',
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

/** One for each operation that needs none, with what it answers. */
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
