import { randomBytes } from 'node:crypto'
import { generateToken } from '../../infra/crypto/tokens.ts'
import { asId } from '../../infra/ids.ts'
import { generateDeliveryKeys } from '../../infra/wire/delivery-envelope.ts'
import { systemServiceId } from '../../infra/wire/gate.ts'
import { receiptUrl } from '../../services/gate/erasure/receipt.ts'
import { type Context, type Endpoint, keyed, type OpenEndpoint } from './endpoint.ts'
import type { World } from './world.ts'

const services = '/v1/gate/services'
const sessions = '/v1/gate/sessions'
const service =
  (rest = '') =>
  ({ gate }: Context) =>
    `${services}/${gate.serviceId}${rest}`
const signup =
  (rest = '') =>
  ({ gate }: Context) =>
    `${sessions}/${gate.signup.id}${rest}`
const ofSignup = { token: 'poll', elsewhere: 401 } as const
const reading = 'gate:services:read'
const managing = 'gate:services:manage'
const absent = { elsewhere: 404 }

/** Those of Gate that need a key or a token. */
export const gateEndpoints: Record<string, Endpoint> = {
  listManagedGateServices: keyed('GET', services, reading),
  // The id is taken: an organization can have five services in all, and each key would make one.
  createManagedGateService: keyed('POST', services, managing, {
    success: 409,
    elsewhere: 409,
    body: ({ gate }) => ({
      id: gate.serviceId,
      name: 'Acme',
      description: 'Mail.',
      website: 'https://acme.example',
      webhook_endpoint_id: `we_${'0'.repeat(32)}`,
    }),
  }),
  getManagedGateService: keyed('GET', service(), reading, absent),
  updateManagedGateService: keyed('PATCH', service(), managing, {
    ...absent,
    body: { name: 'Renamed' },
  }),
  getManagedGateServiceDomain: keyed('GET', service('/domain'), reading, absent),
  verifyManagedGateServiceDomain: keyed('POST', service('/domain/verify'), managing, absent),
  disableManagedGateService: keyed(
    'DELETE',
    ({ gate }) => `${services}/${gate.doomedServiceId}`,
    managing,
    absent,
  ),
  pollGateSession: keyed('GET', signup(), ofSignup),
  // After the poll: it ends what is polled.
  acknowledgeGateSessionDelivery: keyed('POST', signup('/ack'), {
    ...ofSignup,
    body: ({ gate }) => ({ ack_token: gate.signup.ackToken }),
  }),
  claimGateSession: keyed('POST', signup('/claim'), { ...ofSignup, body: { code: '000 000' } }),
  createGateLoginSession: keyed('POST', '/v1/gate/login-sessions', {
    token: 'agent',
    success: 201,
    elsewhere: 401,
    body: ({ gate }) => ({ service_id: gate.serviceId }),
  }),
  verifyGateAgentToken: keyed('POST', '/v1/gate/agent-tokens/verify', 'gate:agent_tokens:verify', {
    body: ({ gate }) => ({ agent_token: gate.signup.agentToken }),
  }),
  revokeGateAgentToken: keyed('POST', '/v1/gate/agent-tokens/revoke', 'gate:agent_tokens:revoke', {
    success: 204,
    ...absent,
    body: ({ gate }) => ({ agent_token: gate.doomedToken }),
  }),
  listGateAgentAccounts: keyed('GET', '/v1/gate/agent-accounts', reading),
  revokeGateAgentAccountToken: keyed(
    'DELETE',
    ({ gate }) => `/v1/gate/agent-accounts/${gate.doomedAccountId}/token`,
    'gate:agent_tokens:revoke',
    absent,
  ),
  countGateSignups: keyed('GET', '/v1/gate/signup-counts', reading),
  consumeGateLoginSessionCode: keyed(
    'POST',
    '/v1/gate/login-sessions/consume',
    'gate:login_sessions:consume',
    {
      elsewhere: 410,
      gone: 'gate.session_expired',
      body: async ({ world, gate, succeeds }) => ({
        code: succeeds
          ? await world.gate.loginCode(gate.serviceId, gate.signup.agentToken ?? '')
          : generateToken('gtcode', randomBytes),
      }),
    },
  ),
}

/** A request about a new signup to Gate itself. */
function aboutNew(
  method: 'GET' | 'POST',
  name: string,
  bodyOf?: (world: World, id: string) => object | Promise<object>,
): OpenEndpoint {
  return {
    success: 200,
    async example({ world }) {
      const { id } = await world.gate.open(systemServiceId)
      const url = `${sessions}/${id}/${name}`
      return bodyOf ? { method, url, body: await bodyOf(world, id) } : { method, url }
    },
  }
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
    example({ gate: { serviceId: service_id } }) {
      const { delivery } = generateDeliveryKeys()
      const body = { service_id, account_name: 'Robin', delivery }
      return { method: 'POST', url: sessions, body }
    },
  },
  getGateSessionConsent: aboutNew('GET', 'consent'),
  approveGateSession: aboutNew('POST', 'approve', ({ gate }, id) => gate.approval(id)),
  eraseGateSession: aboutNew('POST', 'erase', ({ deps, publicUrl }, id) => {
    const { hash } = new URL(receiptUrl({ ...deps, publicUrl }, asId('gate', id)))
    return { receipt_token: hash.slice(1) }
  }),
  cancelGateSession: aboutNew('POST', 'cancel'),
}
