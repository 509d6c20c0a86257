import { randomBytes } from 'node:crypto'
import { generateToken } from '../../infra/crypto/tokens.ts'
import { asId } from '../../infra/ids.ts'
import { generateDeliveryKeys } from '../../infra/wire/delivery-envelope.ts'
import { systemServiceId } from '../../infra/wire/gate.ts'
import { receiptUrl } from '../../services/gate/erasure/receipt.ts'
import type { Context, Endpoint, OpenEndpoint } from './examples.ts'

const services = '/v1/gate/services'
const session = ({ gate }: Context, rest = '') => `/v1/gate/sessions/${gate.signup.id}${rest}`

/** Those of Gate that need a key or a token. */
export const gateEndpoints: Record<string, Endpoint> = {
  listManagedGateServices: {
    scope: 'gate:services:read',
    success: 200,
    elsewhere: 200,
    example: () => ({ method: 'GET', url: services }),
  },
  // The id is taken: an organization can have five services in all, and each key would make one.
  createManagedGateService: {
    scope: 'gate:services:manage',
    success: 409,
    elsewhere: 409,
    example: ({ gate }) => ({
      method: 'POST',
      url: services,
      body: {
        id: gate.serviceId,
        name: 'Acme',
        description: 'Mail.',
        website: 'https://acme.example',
        webhook_endpoint_id: `we_${'0'.repeat(32)}`,
      },
    }),
  },
  getManagedGateService: {
    scope: 'gate:services:read',
    success: 200,
    elsewhere: 404,
    example: ({ gate }) => ({ method: 'GET', url: `${services}/${gate.serviceId}` }),
  },
  updateManagedGateService: {
    scope: 'gate:services:manage',
    success: 200,
    elsewhere: 404,
    example: ({ gate }) => ({
      method: 'PATCH',
      url: `${services}/${gate.serviceId}`,
      body: { name: 'Renamed' },
    }),
  },
  getManagedGateServiceDomain: {
    scope: 'gate:services:read',
    success: 200,
    elsewhere: 404,
    example: ({ gate }) => ({ method: 'GET', url: `${services}/${gate.serviceId}/domain` }),
  },
  verifyManagedGateServiceDomain: {
    scope: 'gate:services:manage',
    success: 200,
    elsewhere: 404,
    example: ({ gate }) => ({ method: 'POST', url: `${services}/${gate.serviceId}/domain/verify` }),
  },
  disableManagedGateService: {
    scope: 'gate:services:manage',
    success: 200,
    elsewhere: 404,
    example: ({ gate }) => ({ method: 'DELETE', url: `${services}/${gate.doomedServiceId}` }),
  },
  pollGateSession: {
    token: 'poll',
    success: 200,
    elsewhere: 401,
    example: (context) => ({ method: 'GET', url: session(context) }),
  },
  // After the poll: it ends what is polled.
  acknowledgeGateSessionDelivery: {
    token: 'poll',
    success: 200,
    elsewhere: 401,
    example: (context) => ({
      method: 'POST',
      url: session(context, '/ack'),
      body: { ack_token: context.gate.signup.ackToken },
    }),
  },
  claimGateSession: {
    token: 'poll',
    success: 200,
    elsewhere: 401,
    example: (context) => ({
      method: 'POST',
      url: session(context, '/claim'),
      body: { code: '000 000' },
    }),
  },
  createGateLoginSession: {
    token: 'agent',
    success: 201,
    elsewhere: 401,
    example: ({ gate }) => ({
      method: 'POST',
      url: '/v1/gate/login-sessions',
      body: { service_id: gate.serviceId },
    }),
  },
  verifyGateAgentToken: {
    scope: 'gate:agent_tokens:verify',
    success: 200,
    elsewhere: 200,
    example: ({ gate }) => ({
      method: 'POST',
      url: '/v1/gate/agent-tokens/verify',
      body: { agent_token: gate.signup.agentToken },
    }),
  },
  revokeGateAgentToken: {
    scope: 'gate:agent_tokens:revoke',
    success: 204,
    elsewhere: 404,
    example: ({ gate }) => ({
      method: 'POST',
      url: '/v1/gate/agent-tokens/revoke',
      body: { agent_token: gate.doomedToken },
    }),
  },
  consumeGateLoginSessionCode: {
    scope: 'gate:login_sessions:consume',
    success: 200,
    elsewhere: 410,
    gone: 'gate.session_expired',
    example: async ({ world, gate, succeeds }) => ({
      method: 'POST',
      url: '/v1/gate/login-sessions/consume',
      body: {
        code: succeeds
          ? await world.gate.loginCode(gate.serviceId, gate.signup.agentToken ?? '')
          : generateToken('gtcode', randomBytes),
      },
    }),
  },
}

/** Those that anyone may call; what they are about is made for each call. */
export const openGateEndpoints: Record<string, OpenEndpoint> = {
  listGateRegistryServices: {
    success: 200,
    example: () => ({ method: 'GET', url: '/v1/gate/registry' }),
  },
  getGateRegistryService: {
    success: 200,
    example: ({ gate }) => ({ method: 'GET', url: `/v1/gate/registry/${gate.serviceId}` }),
  },
  createGateSession: {
    success: 201,
    example: ({ gate }) => ({
      method: 'POST',
      url: '/v1/gate/sessions',
      body: {
        service_id: gate.serviceId,
        account_name: 'Robin',
        delivery: generateDeliveryKeys().delivery,
      },
    }),
  },
  getGateSessionConsent: {
    success: 200,
    example: async ({ world: { gate } }) => {
      const { id } = await gate.open(systemServiceId)
      return { method: 'GET', url: `/v1/gate/sessions/${id}/consent` }
    },
  },
  approveGateSession: {
    success: 200,
    example: async ({ world: { gate } }) => {
      const { id } = await gate.open(systemServiceId)
      return {
        method: 'POST',
        url: `/v1/gate/sessions/${id}/approve`,
        body: await gate.approval(id),
      }
    },
  },
  eraseGateSession: {
    success: 200,
    example: async ({ world: { gate, deps, publicUrl } }) => {
      const { id } = await gate.open(systemServiceId)
      const { hash } = new URL(receiptUrl({ ...deps, publicUrl }, asId('gate', id)))
      const body = { receipt_token: hash.slice(1) }
      return { method: 'POST', url: `/v1/gate/sessions/${id}/erase`, body }
    },
  },
  cancelGateSession: {
    success: 200,
    example: async ({ world: { gate } }) => {
      const { id } = await gate.open(systemServiceId)
      return { method: 'POST', url: `/v1/gate/sessions/${id}/cancel` }
    },
  },
}
