import { randomBytes } from 'node:crypto'
import type { ErrorCode } from '../../infra/errors/errors.ts'
import { addAgentDirectory } from '../../services/organizations/agent-directories.ts'
import type { ApprovedSignup } from '../support/gate-flow.ts'
import type { Platform } from './credential.ts'
import { gateEndpoints, openGateEndpoints } from './gate-examples.ts'
import type { Person } from './person.ts'
import type { CollectBodies } from './record-collect.ts'
import type { World } from './world.ts'

export interface Example {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  url: string
  body?: string | Buffer | object
  headers?: Record<string, string>
}

/** A well-formed request to one endpoint, and the status that a key which may do it gets. */
export interface Endpoint {
  /** As the specification names it; none = a collect endpoint, which takes publishable keys, or one for a token. */
  scope?: string
  /** The token of Gate's that it takes instead of a key. */
  token?: 'poll' | 'agent'
  success: number
  /** What a key of another environment, or (where the path names no organization) of another organization gets. */
  elsewhere: number
  /** Callers that need rights in live, for an operation that changes a setting of live and test. */
  needsLive?: 'everyone' | 'people'
  /** The code of a 410, where that is not about a collect session. */
  gone?: ErrorCode
  example: (context: Context) => Example | Promise<Example>
}

export interface Context {
  world: World
  organizationId: string
  platform: Platform
  bodies: Record<Platform, CollectBodies>
  /** Whether the request is to have its effect: then what it ends must be there, and of its own. */
  succeeds: boolean
  /** The id of a live key to change or end, which may no more than manage keys. */
  keyId(options: { fresh: boolean }): Promise<string>
  /** Of the live environment; the event was raised for the endpoint. */
  webhook(options: { fresh: boolean }): Promise<{ endpointId: string; eventId: string }>
  /** Somebody whom the organization knows. */
  person(options: { fresh: boolean }): Promise<Person>
  /** The organization's services and accounts. */
  gate: GateContext
}

export interface GateContext {
  /** Open to signups, with a dashboard. */
  serviceId: string
  /** Nothing else is done with it. */
  doomedServiceId: string
  /** Of the service; the poll token and the agent token among the credentials are its. */
  signup: ApprovedSignup
  /** An agent token that nobody else uses. */
  doomedToken: string
}

const own = ({ organizationId }: Context, rest = '') => `/v1/organizations/${organizationId}${rest}`
// Within the scopes of everyone who may make one.
const newKey = { name: 'New', type: 'secret', scopes: ['api_keys:manage'] }
const rotation = { ip: '8.8.8.8', proxy_provider: 'BYTEFUL', desired_country_code: 'DE' }
const edgeRequest = {
  method: 'GET',
  scheme: 'https',
  authority: 'shop.example',
  path: '/',
  headers: [['User-Agent', 'curl/8.14.1']],
  ip: '203.0.113.9',
}

async function endpoint(context: Context, { fresh }: { fresh: boolean }): Promise<string> {
  return own(context, `/webhooks/endpoints/${(await context.webhook({ fresh })).endpointId}`)
}

async function visitor(context: Context, { fresh }: { fresh: boolean }): Promise<string> {
  return own(context, `/visitors/${(await context.person({ fresh })).visitorId}`)
}

async function user(context: Context, { fresh }: { fresh: boolean }): Promise<string> {
  return own(context, `/users/${(await context.person({ fresh })).clientUserId}`)
}

async function session({ person }: Context): Promise<string> {
  return `/v1/sessions/${(await person({ fresh: false })).sessionId}`
}

/** One for each operation that needs a key. */
export const endpoints: Record<string, Endpoint> = {
  listSessions: {
    scope: 'sessions:list',
    success: 200,
    elsewhere: 200,
    example: () => ({ method: 'GET', url: '/v1/sessions' }),
  },
  countSessions: {
    scope: 'sessions:list',
    success: 200,
    elsewhere: 200,
    example: () => ({ method: 'GET', url: '/v1/sessions/aggregates' }),
  },
  getSession: {
    scope: 'sessions:read',
    success: 200,
    elsewhere: 404,
    example: async (context) => ({ method: 'GET', url: await session(context) }),
  },
  getScoringModel: {
    scope: 'sessions:read',
    success: 200,
    elsewhere: 200,
    example: () => ({ method: 'GET', url: '/v1/scoring/model' }),
  },
  updateSession: {
    scope: 'sessions:update',
    success: 200,
    elsewhere: 404,
    example: async ({ person, succeeds }) => ({
      method: 'PATCH',
      url: `/v1/sessions/${(await person({ fresh: succeeds })).sessionId}`,
      body: { client_user_id: `user_${randomBytes(4).toString('hex')}` },
    }),
  },
  markSessions: {
    scope: 'sessions:mark',
    success: 201,
    elsewhere: 422,
    example: async ({ person }) => ({
      method: 'POST',
      url: '/v1/marks',
      body: { label: 'bot', session_ids: [(await person({ fresh: false })).sessionId] },
    }),
  },
  deleteMark: {
    scope: 'sessions:mark',
    success: 200,
    elsewhere: 404,
    example: async ({ person, succeeds }) => ({
      method: 'DELETE',
      url: `/v1/marks/${(await person({ fresh: succeeds })).markId}`,
    }),
  },
  listVisitorFingerprints: {
    scope: 'fingerprints:list',
    success: 200,
    elsewhere: 200,
    example: () => ({ method: 'GET', url: '/v1/fingerprints' }),
  },
  getVisitorFingerprint: {
    scope: 'fingerprints:read',
    success: 200,
    elsewhere: 404,
    example: async ({ person }) => ({
      method: 'GET',
      url: `/v1/fingerprints/${(await person({ fresh: false })).visitorId}`,
    }),
  },
  splitVisitor: {
    scope: 'visitors:manage',
    success: 201,
    elsewhere: 404,
    example: async (context) => {
      const { visitorId, sessionId } = await context.person({ fresh: context.succeeds })
      return {
        method: 'POST',
        url: own(context, `/visitors/${visitorId}/splits`),
        body: { session_ids: [sessionId], reason: 'Two people.' },
      }
    },
  },
  mergeVisitors: {
    scope: 'visitors:manage',
    success: 201,
    elsewhere: 404,
    example: async (context) => {
      const { visitorId, otherVisitorId } = await context.person({ fresh: context.succeeds })
      return {
        method: 'POST',
        url: own(context, `/visitors/${visitorId}/merges`),
        body: { visitor_id: otherVisitorId, reason: 'One person.' },
      }
    },
  },
  eraseVisitor: {
    scope: 'visitors:erase',
    success: 200,
    elsewhere: 404,
    example: async (context) => ({
      method: 'DELETE',
      url: await visitor(context, { fresh: context.succeeds }),
    }),
  },
  eraseUser: {
    scope: 'visitors:erase',
    success: 200,
    elsewhere: 404,
    example: async (context) => ({
      method: 'DELETE',
      url: await user(context, { fresh: context.succeeds }),
    }),
  },
  eraseGateAccount: {
    scope: 'visitors:erase',
    success: 404,
    elsewhere: 404,
    example: (context) => ({
      method: 'DELETE',
      url: own(context, `/gate-accounts/gacct_${'0'.repeat(26)}`),
    }),
  },
  exportVisitor: {
    scope: 'visitors:export',
    success: 200,
    elsewhere: 404,
    example: async (context) => ({
      method: 'GET',
      url: `${await visitor(context, { fresh: false })}/export`,
    }),
  },
  exportUser: {
    scope: 'visitors:export',
    success: 200,
    elsewhere: 404,
    example: async (context) => ({
      method: 'GET',
      url: `${await user(context, { fresh: false })}/export`,
    }),
  },
  createOrganization: {
    scope: 'organizations:create',
    success: 201,
    elsewhere: 201,
    example: () => ({
      method: 'POST',
      url: '/v1/organizations',
      body: { name: 'New', slug: `new-${randomBytes(6).toString('hex')}` },
    }),
  },
  getOrganization: {
    scope: 'organizations:read',
    success: 200,
    elsewhere: 200,
    example: (context) => ({ method: 'GET', url: own(context) }),
  },
  updateOrganization: {
    scope: 'organizations:update',
    needsLive: 'people',
    success: 200,
    elsewhere: 200,
    example: (context) => ({ method: 'PATCH', url: own(context), body: { name: 'Renamed' } }),
  },
  listAgentDirectories: {
    scope: 'organizations:read',
    success: 200,
    elsewhere: 200,
    example: (context) => ({ method: 'GET', url: own(context, '/agent-directories') }),
  },
  addAgentDirectory: {
    scope: 'organizations:update',
    needsLive: 'everyone',
    success: 201,
    elsewhere: 201,
    example: (context) => ({
      method: 'POST',
      url: own(context, '/agent-directories'),
      body: { domain: 'agent.example', name: 'Acme' },
    }),
  },
  removeAgentDirectory: {
    scope: 'organizations:update',
    needsLive: 'everyone',
    success: 200,
    elsewhere: 200,
    example: async (context) => {
      const { organizationId, world, succeeds } = context
      const domain = `${randomBytes(4).toString('hex')}.example`
      if (succeeds) await addAgentDirectory(world.deps, { organizationId, domain, by: 'operator' })
      return { method: 'DELETE', url: own(context, `/agent-directories/${domain}`) }
    },
  },
  listOrganizationAuditLog: {
    scope: 'organizations:read',
    success: 200,
    elsewhere: 200,
    example: (context) => ({ method: 'GET', url: own(context, '/audit-log') }),
  },
  listOrganizationApiKeys: {
    scope: 'api_keys:read',
    success: 200,
    elsewhere: 200,
    example: (context) => ({ method: 'GET', url: own(context, '/api-keys') }),
  },
  createOrganizationApiKey: {
    scope: 'api_keys:manage',
    success: 201,
    elsewhere: 201,
    example: (context) => ({ method: 'POST', url: own(context, '/api-keys'), body: newKey }),
  },
  updateOrganizationApiKey: {
    scope: 'api_keys:manage',
    success: 200,
    elsewhere: 404,
    example: async (context) => ({
      method: 'PATCH',
      url: own(context, `/api-keys/${await context.keyId({ fresh: false })}`),
      body: { name: 'Renamed' },
    }),
  },
  revokeOrganizationApiKey: {
    scope: 'api_keys:manage',
    success: 200,
    elsewhere: 404,
    example: async (context) => ({
      method: 'DELETE',
      url: own(context, `/api-keys/${await context.keyId({ fresh: context.succeeds })}`),
    }),
  },
  rotateOrganizationApiKey: {
    scope: 'api_keys:manage',
    success: 201,
    elsewhere: 404,
    example: async (context) => ({
      method: 'POST',
      url: own(context, `/api-keys/${await context.keyId({ fresh: context.succeeds })}/rotations`),
    }),
  },
  listWebhookEndpoints: {
    scope: 'webhooks:read',
    success: 200,
    elsewhere: 200,
    example: (context) => ({ method: 'GET', url: own(context, '/webhooks/endpoints') }),
  },
  createWebhookEndpoint: {
    scope: 'webhooks:manage',
    success: 201,
    elsewhere: 201,
    example: (context) => ({
      method: 'POST',
      url: own(context, '/webhooks/endpoints'),
      body: {
        name: 'New',
        url: 'https://shop.example/',
        event_types: ['session.result.persisted'],
      },
    }),
  },
  updateWebhookEndpoint: {
    scope: 'webhooks:manage',
    success: 200,
    elsewhere: 404,
    example: async (context) => ({
      method: 'PATCH',
      url: await endpoint(context, { fresh: false }),
      body: { name: 'Renamed' },
    }),
  },
  disableWebhookEndpoint: {
    scope: 'webhooks:manage',
    success: 200,
    elsewhere: 404,
    example: async (context) => ({
      method: 'DELETE',
      url: await endpoint(context, { fresh: context.succeeds }),
    }),
  },
  rotateWebhookEndpointSecret: {
    scope: 'webhooks:manage',
    success: 201,
    elsewhere: 404,
    example: async (context) => ({
      method: 'POST',
      url: `${await endpoint(context, { fresh: context.succeeds })}/rotations`,
    }),
  },
  sendTestWebhook: {
    scope: 'webhooks:manage',
    success: 202,
    elsewhere: 404,
    example: async (context) => ({
      method: 'POST',
      url: `${await endpoint(context, { fresh: false })}/test`,
    }),
  },
  listEvents: {
    scope: 'webhooks:read',
    success: 200,
    elsewhere: 200,
    example: (context) => ({ method: 'GET', url: own(context, '/events') }),
  },
  retrieveEvent: {
    scope: 'webhooks:read',
    success: 200,
    elsewhere: 404,
    example: async (context) => ({
      method: 'GET',
      url: own(context, `/events/${(await context.webhook({ fresh: false })).eventId}`),
    }),
  },
  checkAgentIpRotation: {
    scope: 'agents:ip_rotation',
    success: 200,
    elsewhere: 200,
    example: () => ({ method: 'POST', url: '/v1/agents/ip-rotation', body: { items: [rotation] } }),
  },
  scoreRequests: {
    scope: 'requests:score',
    success: 200,
    elsewhere: 200,
    example: () => ({
      method: 'POST',
      url: '/v1/requests/score',
      body: { requests: [edgeRequest] },
    }),
  },
  ...gateEndpoints,
  openCollectSession: {
    success: 200,
    elsewhere: 200,
    example: ({ bodies, platform }) => bodies[platform].open,
  },
  sendCollectBatch: {
    success: 200,
    elsewhere: 410,
    example: ({ bodies, platform }) => bodies[platform].batch,
  },
  handOffCollectSession: {
    success: 200,
    elsewhere: 410,
    example: ({ bodies, platform }) => bodies[platform].result,
  },
}

export interface OpenEndpoint {
  success: number
  example: (context: Pick<Context, 'world' | 'gate'>) => Example | Promise<Example>
}

function get(url: string) {
  return (): Example => ({ method: 'GET', url })
}

/** One for each operation that needs none, with what it answers. */
export const openEndpoints: Record<string, OpenEndpoint> = {
  getDescription: { example: get('/openapi.json'), success: 200 },
  getLiveness: { example: get('/livez'), success: 200 },
  getReadiness: { example: get('/readyz'), success: 200 },
  getMetrics: { example: get('/metrics'), success: 200 },
  getBrowserSdk: { example: get('/t.js'), success: 200 },
  pingCollect: { example: get('/v2/collect/pings/p1'), success: 204 },
  reportNetworkCheck: {
    example: () => ({ method: 'POST', url: '/v2/collect/network-checks', body: { ok: true } }),
    success: 202,
  },
  ...openGateEndpoints,
}
