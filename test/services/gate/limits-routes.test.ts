import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { generateToken } from '../../../infra/crypto/tokens.ts'
import { freshAddress } from '../../support/gate-flow.ts'
import type { Send } from '../../support/send.ts'
import { useGateApi } from './gate-api.ts'

const gate = await useGateApi()
const owner = await gate.owner()
const stranger = await gate.owner()

type Request = Omit<Send, 'url'> & { path: string }
const send = async ({ path, ...request }: Request) => gate.ask(path, request)
const open = () => gate.flow.open('tidegate')
const post = (path: string, more: Omit<Request, 'path'> = {}): Request => ({
  method: 'POST',
  path,
  ...more,
})

/** A request, and others that differ in one part of the limit's key. */
type Limited = () => Promise<[Request, ...Request[]]>

const byAddress = (make: () => Promise<Request>) => async (): Promise<[Request, Request]> => {
  const request = await make()
  return [
    { ...request, ip: freshAddress() },
    { ...request, ip: freshAddress() },
  ]
}
const byToken = (make: () => Promise<Request>) => async (): Promise<[Request, Request]> => [
  await make(),
  await make(),
]
const byKeyAndValue =
  (path: string, value: () => object) => async (): Promise<[Request, ...Request[]]> => {
    const request = post(path, { key: owner.secretKey, body: value() })
    return [request, { ...request, key: stranger.secretKey }, { ...request, body: value() }]
  }

const agentToken = () => ({ agent_token: generateToken('agt', randomBytes) })
const limits: [string, number, Limited][] = [
  // Whatever the body.
  ['sign up', 5, byAddress(async () => post('sessions', { body: {} }))],
  [
    'poll',
    30,
    byToken(async () => {
      const { id, pollToken: key } = await open()
      return { path: `sessions/${id}`, key }
    }),
  ],
  ['consent', 30, byAddress(async () => ({ path: `sessions/${(await open()).id}/consent` }))],
  [
    'approve',
    3,
    async () => {
      const approve = async () => post(`sessions/${(await open()).id}/approve`, { body: {} })
      const request = { ...(await approve()), ip: freshAddress() }
      return [request, { ...request, ip: freshAddress() }, { ...(await approve()), ip: request.ip }]
    },
  ],
  ['cancel', 60, byAddress(async () => post(`sessions/${(await open()).id}/cancel?closing=1`))],
  [
    'ack',
    20,
    byToken(async () => {
      const { id, pollToken: key } = await open()
      return post(`sessions/${id}/ack`, { key, body: {} })
    }),
  ],
  [
    'claim',
    20,
    byToken(async () => {
      const { id, pollToken: key } = await open()
      return post(`sessions/${id}/claim`, { key, body: { code: '000 000' } })
    }),
  ],
  [
    'erase',
    10,
    byAddress(async () =>
      post(`sessions/${(await open()).id}/erase`, { body: { receipt_token: 'x' } }),
    ),
  ],
  [
    'log in',
    10,
    byToken(async () => {
      const { agentToken: key } = await gate.flow.signUp(owner.serviceId)
      return post('login-sessions', { key, body: { service_id: owner.serviceId } })
    }),
  ],
  ['verify a token', 60, byKeyAndValue('agent-tokens/verify', agentToken)],
  ['revoke a token', 20, byKeyAndValue('agent-tokens/revoke', agentToken)],
  [
    'consume a code',
    30,
    byKeyAndValue('login-sessions/consume', () => ({ code: generateToken('gtcode', randomBytes) })),
  ],
  [
    'verify a domain',
    30,
    byToken(async () => {
      const { serviceId, secretKey: key } = await gate.owner()
      return post(`services/${serviceId}/domain/verify`, { key })
    }),
  ],
]

test.each(limits)(
  '%s: %i requests pass, then 429 until Retry-After has passed, independent of other clients',
  async (what, most, requestsOf) => {
    const [request, ...others] = await requestsOf()
    const answers = await Promise.all(Array.from({ length: most + 2 }, () => send(request)))
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.map(({ outcome }) => outcome)).toEqual(Array(2).fill('429 gate.rate_limit'))
    const window = what === 'approve' ? 900 : 60
    for (const { headers } of refused) {
      expect(Number(headers['retry-after'])).toBeGreaterThan(window - 10)
      expect(Number(headers['retry-after'])).toBeLessThanOrEqual(window)
    }
    for (const other of others) expect((await send(other)).status).not.toBe(429)
    await gate.pool.query('update tidegate.gate_limits set expire = 0')
    expect((await send(request)).status).not.toBe(429)
  },
)
