import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import type { KeyRecord } from '../../../infra/access/principal.ts'
import { amount } from '../../support/long.ts'
import {
  type AuthApp,
  organizationId,
  otherOrganization,
  type Send,
  start,
  startAuthApp,
} from './auth-app.ts'

let app: AuthApp
const outcomes: string[] = []
beforeEach(async () => {
  outcomes.length = 0
  app = await startAuthApp(() => ({ onKeyLookup: (outcome) => outcomes.push(outcome) }))
})

const codeOf = async (key: string, request: Send = {}) =>
  (await app.send({ url: '/rest', key, ...request })).code

test('a change applies after 15 seconds at the latest', async () => {
  const key = app.secret()
  expect(await codeOf(key)).toBeUndefined()
  app.change(key, () => ({ status: 'revoked' }))
  app.now.ms = start + 14_999
  expect(await codeOf(key)).toBeUndefined()
  app.now.ms = start + 15_000
  expect(await codeOf(key)).toBe('auth.invalid_api_key')
  expect(outcomes).toEqual(['found', 'found'])
})

test('a change applies at once when it is heard of', async () => {
  const key = app.secret()
  expect(await codeOf(key)).toBeUndefined()
  app.change(key, () => ({ organizationStatus: 'suspended' }))
  app.auth.invalidate()
  expect(await codeOf(key)).toBe('auth.organization_inactive')
})

describe('what is remembered', () => {
  test('a key that nobody has is looked up once in 15 seconds', async () => {
    const key = app.unknown()
    for (const later of [0, 14_999, 15_000]) {
      app.now.ms = start + later
      expect(await codeOf(key)).toBe('auth.invalid_api_key')
    }
    expect(outcomes).toEqual(['unknown', 'unknown'])
  })

  test('that nobody has a key is forgotten when something changes', async () => {
    const key = app.unknown()
    await codeOf(key)
    app.auth.invalidate()
    await codeOf(key)
    expect(app.asked.lookups).toBe(2)
  })

  test('a clock that is set back does not make an answer last longer', async () => {
    const key = app.secret()
    await codeOf(key)
    app.change(key, () => ({ status: 'revoked' }))
    app.now.ms = start - 3_600_000
    expect(await codeOf(key)).toBe('auth.invalid_api_key')
  })
})

/** Look-ups that a test answers when and as it likes. */
async function startHeld() {
  const waiting: ((record: KeyRecord | undefined) => void)[] = []
  app = await startAuthApp(() => ({
    findKey: () => new Promise((resolve) => waiting.push(resolve)),
  }))
  const send = (key: string) => {
    const sent = codeOf(key)
    return { code: async () => (await sent) ?? 'works' }
  }
  return { waiting, send }
}

const found: KeyRecord = {
  principal: {
    type: 'secret',
    keyId: 'key_1',
    organizationId: 'org_1',
    environment: 'live',
    rateLimit: null,
    scopes: ['*'],
    capabilities: [],
    origins: [],
  },
  status: 'active',
  graceExpiresAt: null,
  organizationStatus: 'active',
}
const revoked: KeyRecord = { ...found, status: 'revoked' }
const turn = () => new Promise((resolve) => setImmediate(resolve))
async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 1000 && !condition(); i++) await turn()
  expect(condition()).toBe(true)
}

test('whatever the order of a look-up and a change, nobody is let in by an answer to a question older than the change', async () => {
  type Step = 'ask' | 'revoke' | 'answer first' | 'answer last'
  const steps = fc.array(fc.constantFrom<Step>('ask', 'revoke', 'answer first', 'answer last'), {
    minLength: 4,
    maxLength: 14,
  })
  await fc.assert(
    fc.asyncProperty(steps, async (plan) => {
      let isRevoked = false
      const open: { resolve: (record: KeyRecord) => void; answer: KeyRecord }[] = []
      app = await startAuthApp(() => ({
        findKey: () =>
          new Promise((resolve) => open.push({ resolve, answer: isRevoked ? revoked : found })),
      }))
      const key = app.unknown()
      const sent: { code: Promise<string | undefined>; after: boolean }[] = []
      for (const step of [...plan, 'ask' as const]) {
        if (step === 'ask') sent.push({ code: codeOf(key), after: isRevoked })
        if (step === 'revoke') {
          isRevoked = true
          app.auth.invalidate()
        }
        const answered =
          step === 'answer first' ? open.shift() : step === 'answer last' ? open.pop() : undefined
        answered?.resolve(answered.answer)
        for (let i = 0; i < 8; i++) await turn()
      }
      while (open.length > 0) {
        for (const { resolve, answer } of open.splice(0)) resolve(answer)
        for (let i = 0; i < 8; i++) await turn()
      }
      for (const { code, after } of sent) {
        const got = await code
        if (after) expect(got).toBe('auth.invalid_api_key')
        else expect([undefined, 'auth.invalid_api_key']).toContain(got)
      }
    }),
    { numRuns: amount({ few: 40, many: 150 }) },
  )
})

const source = '203.0.113.9'

describe('the budget of a source', () => {
  const guess = (remoteAddress: string) =>
    app.send({ url: '/rest', key: app.unknown(), remoteAddress }).then(({ status }) => status)
  const guesses = (count: number, address: string) =>
    Promise.all(Array.from({ length: count }, () => guess(address)))
  const counted = (statuses: number[], status: number) =>
    statuses.filter((one) => one === status).length

  test('is 50 look-ups, then 10 a second; the rest is 429 without X-RateLimit headers', async () => {
    const statuses = await guesses(60, source)
    expect([counted(statuses, 401), counted(statuses, 429)]).toEqual([50, 10])
    expect(app.asked.lookups).toBe(50)
    expect(outcomes.filter((outcome) => outcome === 'refused')).toHaveLength(10)
    const answer = await app.send({ url: '/rest', key: app.unknown(), remoteAddress: source })
    expect(answer).toMatchObject({ status: 429, code: 'rate_limit.exceeded', limits: Array(3) })
    expect([answer.headers['retry-after'], answer.json.error.retryable]).toEqual(['1', true])
    app.now.ms += 1000
    expect(counted(await guesses(20, source), 401)).toBe(10)
    app.now.ms += 60_000
    expect(counted(await guesses(60, source), 401)).toBe(50)
  })

  test('is not spent by what needs no look-up, nor by a key that was verified before', async () => {
    const [customer, unknown, remoteAddress] = [app.secret(), app.unknown(), source]
    expect(await codeOf(customer, { remoteAddress })).toBeUndefined()
    await codeOf(unknown, { remoteAddress })
    await guesses(49, remoteAddress)
    expect(await guess(remoteAddress)).toBe(429)
    // Neither cached, nor known to be unknown, nor malformed.
    expect(await codeOf(customer, { remoteAddress })).toBeUndefined()
    expect(await codeOf(unknown, { remoteAddress })).toBe('auth.invalid_api_key')
    expect(await codeOf('sk_live_x', { remoteAddress })).toBe('auth.invalid_api_key')
    // Looked up again, once stale.
    app.auth.invalidate()
    const { lookups } = app.asked
    expect(await codeOf(customer, { remoteAddress })).toBeUndefined()
    expect(app.asked.lookups).toBe(lookups + 1)
    // A key that is new here has to wait.
    expect(await codeOf(app.secret(), { remoteAddress })).toBe('rate_limit.exceeded')
    expect(await codeOf(app.secret(), { remoteAddress: '203.0.113.10' })).toBeUndefined()
  })

  test('is spent once by requests that share a look-up', async () => {
    const key = app.unknown()
    const remoteAddress = source
    await Promise.all(Array.from({ length: 100 }, () => codeOf(key, { remoteAddress })))
    expect(counted(await guesses(60, remoteAddress), 401)).toBe(49)
  })
})

test('guesses are looked up a few at a time, and a known key does not wait for them', async () => {
  const { waiting, send } = await startHeld()
  const customer = app.unknown()
  const known = send(customer)
  await until(() => waiting.length === 1)
  waiting.shift()?.(found)
  expect(await known.code()).toBe('works')
  const sent = Array.from({ length: 30 }, () => send(app.unknown()))
  await until(() => waiting.length === 4)
  for (let i = 0; i < 20; i++) await turn()
  expect(waiting).toHaveLength(4)
  app.auth.invalidate()
  const again = send(customer)
  await until(() => waiting.length === 5)
  waiting.pop()?.(found)
  expect(await again.code()).toBe('works')
  while (waiting.length > 0) {
    for (const answer of waiting.splice(0)) answer(undefined)
    for (let i = 0; i < 8; i++) await turn()
  }
  const codes = await Promise.all(sent.map(({ code }) => code()))
  expect(new Set(codes)).toEqual(new Set(['auth.invalid_api_key']))
})

describe('a change of one organization', () => {
  const otherRecord = (record: KeyRecord): Partial<KeyRecord> => ({
    principal: { ...record.principal, organizationId: otherOrganization },
  })

  test('makes its own keys be looked up again, and no others', async () => {
    const [mine, other] = [app.secret(), app.secret()]
    app.change(other, otherRecord)
    await codeOf(mine)
    await codeOf(other)
    for (const key of [mine, other]) app.change(key, () => ({ status: 'revoked' }))
    app.auth.invalidate([organizationId])
    expect(await codeOf(mine)).toBe('auth.invalid_api_key')
    expect(await codeOf(other)).toBeUndefined()
    app.auth.invalidate([otherOrganization])
    expect(await codeOf(other)).toBe('auth.invalid_api_key')
    expect(app.asked.lookups).toBe(4)
  })

  test('is heard of while a look-up runs: its answer is not believed once it is known whose the key is', async () => {
    const { waiting, send } = await startHeld()
    const key = app.unknown()
    const before = send(key)
    await until(() => waiting.length === 1)
    app.auth.invalidate(['org_1'])
    const after = send(key)
    await until(() => waiting.length === 2)
    waiting[0]?.(found)
    expect(await before.code()).toBe('works')
    waiting[1]?.(revoked)
    expect(await after.code()).toBe('auth.invalid_api_key')
  })
})

test('a key that is found, and a look-up that fails, cost a source nothing', async () => {
  for (let i = 0; i < 60; i++)
    expect(await codeOf(app.secret(), { remoteAddress: source })).toBeUndefined()
  const unreachable = Object.assign(new Error('gone'), { code: 'ECONNREFUSED' })
  let down = true
  app = await startAuthApp(() => ({
    findKey: () => (down ? Promise.reject(unreachable) : Promise.resolve(undefined)),
  }))
  for (let i = 0; i < 60; i++)
    expect(await codeOf(app.unknown(), { remoteAddress: source })).toBe('service.unavailable')
  down = false
  expect(await codeOf(app.unknown(), { remoteAddress: source })).toBe('auth.invalid_api_key')
})
