import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { generateToken } from '../../../infra/crypto/tokens.ts'
import { generateDeliveryKeys } from '../../../infra/wire/delivery-envelope.ts'
import { systemServiceId } from '../../../infra/wire/gate.ts'
import { bearer, secretKey } from '../../authorization/credential.ts'
import { startWorld, type World } from '../../authorization/world.ts'
import { freshAddress } from '../../support/gate-flow.ts'

interface Request {
  method: 'GET' | 'POST'
  path: string
  headers?: Record<string, string>
  body?: object
  /** The address that the proxy says; default: one that nobody else has. */
  from?: string
}

interface Limited {
  operation: string
  most: number
  /** Two requests that count together, as everything that counts for them is the same. */
  same: () => Promise<Request>
  /** The same but for one part of what is counted for. */
  others: (request: Request) => Promise<Request[]>
}

let world: World
let secret: Record<string, string>
let foreign: Record<string, string>
let serviceId: string

beforeAll(async () => {
  world = await startWorld({ trustedProxies: ['127.0.0.1'] })
  const own = await world.organization('limited')
  secret = await secretKey(world, { organizationId: own })
  foreign = await secretKey(world, { organizationId: await world.organization('foreign') })
  serviceId = await world.service(own)
})
afterAll(() => world.stop())

async function send({ method, path, headers, body, from = freshAddress() }: Request) {
  const response = await world.app.inject({
    method,
    url: `/v1/gate/${path}`,
    remoteAddress: '127.0.0.1',
    headers: { 'x-forwarded-for': `198.51.100.1, ${from}`, ...headers },
    ...(body && { payload: body }),
  })
  return {
    status: response.statusCode,
    headers: response.headers,
    code: response.json()?.error?.code,
  }
}

const open = () => world.gate.open(systemServiceId)
const withToken = (path: string, token: string, body?: object): Request => ({
  method: body ? 'POST' : 'GET',
  path,
  headers: bearer(token),
  ...(body && { body }),
})

/** A body with one value, sent with a key: counted by both. */
function keyed(
  operation: string,
  path: string,
  { most, value }: { most: number; value: () => object },
): Limited {
  return {
    operation,
    most,
    same: async () => ({ method: 'POST', path, headers: secret, body: value() }),
    others: async (request) => [
      { ...request, headers: foreign },
      { ...request, body: value() },
    ],
  }
}

const limits: Limited[] = [
  {
    operation: 'createGateSession',
    most: 5,
    async same() {
      const { delivery } = generateDeliveryKeys()
      const body = { service_id: systemServiceId, account_name: 'Robin', delivery }
      return { method: 'POST', path: 'sessions', from: freshAddress(), body }
    },
    others: async (request) => [{ ...request, from: freshAddress() }],
  },
  {
    operation: 'pollGateSession',
    most: 30,
    async same() {
      const { id, pollToken } = await open()
      return withToken(`sessions/${id}`, pollToken)
    },
    async others() {
      const { id, pollToken } = await open()
      return [withToken(`sessions/${id}`, pollToken)]
    },
  },
  {
    operation: 'getGateSessionConsent',
    most: 30,
    same: async () => ({
      method: 'GET',
      path: `sessions/${(await open()).id}/consent`,
      from: freshAddress(),
    }),
    others: async (request) => [{ ...request, from: freshAddress() }],
  },
  {
    operation: 'approveGateSession',
    most: 3,
    same: async () => ({
      method: 'POST',
      path: `sessions/${(await open()).id}/approve`,
      from: freshAddress(),
      body: {},
    }),
    others: async (request) => [
      { ...request, from: freshAddress() },
      { ...request, path: `sessions/${(await open()).id}/approve` },
    ],
  },
  {
    operation: 'cancelGateSession',
    most: 60,
    same: async () => ({
      method: 'POST',
      path: `sessions/${(await open()).id}/cancel?closing=1`,
      from: freshAddress(),
    }),
    others: async (request) => [{ ...request, from: freshAddress() }],
  },
  {
    operation: 'acknowledgeGateSessionDelivery',
    most: 20,
    async same() {
      const { id, pollToken } = await open()
      return withToken(`sessions/${id}/ack`, pollToken, {})
    },
    async others() {
      const { id, pollToken } = await open()
      return [withToken(`sessions/${id}/ack`, pollToken, {})]
    },
  },
  {
    operation: 'createGateLoginSession',
    most: 10,
    async same() {
      const { agentToken = '' } = await world.gate.signUp(serviceId)
      return withToken('login-sessions', agentToken, { service_id: serviceId })
    },
    async others() {
      const { agentToken = '' } = await world.gate.signUp(serviceId)
      return [withToken('login-sessions', agentToken, { service_id: serviceId })]
    },
  },
  keyed('verifyGateAgentToken', 'agent-tokens/verify', {
    most: 60,
    value: () => ({ agent_token: generateToken('agt', randomBytes) }),
  }),
  keyed('revokeGateAgentToken', 'agent-tokens/revoke', {
    most: 20,
    value: () => ({ agent_token: generateToken('agt', randomBytes) }),
  }),
  keyed('consumeGateLoginSessionCode', 'login-sessions/consume', {
    most: 30,
    value: () => ({ code: generateToken('gtcode', randomBytes) }),
  }),
]

describe.each(limits)('$operation', ({ most, same, others }) => {
  test(`is answered ${most} times, then 429 until Retry-After is over, whoever else asks`, async () => {
    const request = await same()
    const answers = await Promise.all(Array.from({ length: most + 2 }, () => send(request)))
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.map(({ code }) => code)).toEqual(['gate.rate_limit', 'gate.rate_limit'])
    for (const { headers } of refused)
      expect(String(headers['retry-after'])).toMatch(/^[1-9]\d{0,2}$/)
    for (const other of await others(request)) expect((await send(other)).status).not.toBe(429)
    await world.deps.pool.query('update tidegate.gate_limits set expire = 0')
    expect((await send(request)).status).not.toBe(429)
  })
})

test('only what the trusted proxy says is an address', async () => {
  const { id } = await open()
  const request: Request = {
    method: 'POST',
    path: `sessions/${id}/approve`,
    from: freshAddress(),
    body: {},
  }
  for (let i = 0; i < 3; i++) await send(request)
  const pretended = { 'x-forwarded-for': `192.0.2.99, ${request.from}` }
  expect((await send({ ...request, headers: pretended })).status).toBe(429)
})
