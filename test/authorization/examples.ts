import { randomBytes } from 'node:crypto'
import type { Platform } from './credential.ts'
import type { CollectBodies } from './record-collect.ts'
import { sessionId, visitorId, type World } from './world.ts'

export interface Example {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  url: string
  body?: string | Buffer | object
  headers?: Record<string, string>
}

/** A well-formed request to one endpoint, and the status that a key which may do it gets. */
export interface Endpoint {
  /** As the specification names it; none = a collect endpoint, which takes publishable keys. */
  scope?: string
  success: number
  /** What a key of another environment, or (where the path names no organization) of another organization gets. */
  elsewhere: number
  example: (context: Context) => Example | Promise<Example>
}

export interface Context {
  world: World
  organizationId: string
  platform: Platform
  bodies: Record<Platform, CollectBodies>
  /** Whether the request is to have its effect: then what it ends must be there, and of its own. */
  succeeds: boolean
  /** The id of a key to change or end. */
  keyId(options: { fresh: boolean }): Promise<string>
  /** Of the live environment; the event was raised for the endpoint. */
  webhook(options: { fresh: boolean }): Promise<{ endpointId: string; eventId: string }>
}

const own = ({ organizationId }: Context, rest = '') => `/v1/organizations/${organizationId}${rest}`
const rotation = { ip: '8.8.8.8', proxy_provider: 'BYTEFUL', desired_country_code: 'DE' }

async function endpoint(context: Context, { fresh }: { fresh: boolean }): Promise<string> {
  return own(context, `/webhooks/endpoints/${(await context.webhook({ fresh })).endpointId}`)
}

/** One for each operation that needs a key. */
export const endpoints: Record<string, Endpoint> = {
  listSessions: {
    scope: 'sessions:list',
    success: 200,
    elsewhere: 200,
    example: () => ({ method: 'GET', url: '/v1/sessions' }),
  },
  getSession: {
    scope: 'sessions:read',
    success: 200,
    elsewhere: 404,
    example: () => ({ method: 'GET', url: `/v1/sessions/${sessionId}` }),
  },
  updateSession: {
    scope: 'sessions:update',
    success: 200,
    elsewhere: 404,
    example: () => ({
      method: 'PATCH',
      url: `/v1/sessions/${sessionId}`,
      body: { client_user_id: `user_${randomBytes(4).toString('hex')}` },
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
    example: () => ({ method: 'GET', url: `/v1/fingerprints/${visitorId}` }),
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
    success: 200,
    elsewhere: 200,
    example: (context) => ({ method: 'PATCH', url: own(context), body: { name: 'Renamed' } }),
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
    example: (context) => ({ method: 'POST', url: own(context, '/api-keys'), body: { name: 'New' } }),
  },
  updateOrganizationApiKey: {
    scope: 'api_keys:manage',
    success: 200,
    elsewhere: 200,
    example: async (context) => ({
      method: 'PATCH',
      url: own(context, `/api-keys/${await context.keyId({ fresh: false })}`),
      body: { name: 'Renamed' },
    }),
  },
  revokeOrganizationApiKey: {
    scope: 'api_keys:manage',
    success: 200,
    elsewhere: 200,
    example: async (context) => ({
      method: 'DELETE',
      url: own(context, `/api-keys/${await context.keyId({ fresh: context.succeeds })}`),
    }),
  },
  rotateOrganizationApiKey: {
    scope: 'api_keys:manage',
    success: 201,
    elsewhere: 201,
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
      body: { name: 'New', url: 'https://shop.example/', event_types: ['session.result.persisted'] },
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

/** One for each operation that needs none, with what it answers. */
export const openEndpoints: Record<string, { example: Example; success: number }> = {
  getDescription: { example: { method: 'GET', url: '/openapi.json' }, success: 200 },
  getLiveness: { example: { method: 'GET', url: '/livez' }, success: 200 },
  getReadiness: { example: { method: 'GET', url: '/readyz' }, success: 200 },
  getMetrics: { example: { method: 'GET', url: '/metrics' }, success: 200 },
  getBrowserSdk: { example: { method: 'GET', url: '/t.js' }, success: 200 },
  pingCollect: { example: { method: 'GET', url: '/v2/collect/pings/p1' }, success: 204 },
  reportNetworkCheck: {
    example: { method: 'POST', url: '/v2/collect/network-checks', body: { ok: true } },
    success: 202,
  },
}
