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

test('a change applies within 15 seconds', async () => {
  const key = app.secret()
  expect(await codeOf(key)).toBeUndefined()
  app.change(key, () => ({ status: 'revoked' }))
  app.now.ms = start + 14_999
  expect(await codeOf(key)).toBeUndefined()
  app.now.ms = start + 15_000
  expect(await codeOf(key)).toBe('auth.invalid_api_key')
  expect(outcomes).toEqual(['found', 'found'])
})

test('a change applies at once after invalidation', async () => {
  const key = app.secret()
  expect(await codeOf(key)).toBeUndefined()
  app.change(key, () => ({ organizationStatus: 'suspended' }))
  app.auth.invalidate()
  expect(await codeOf(key)).toBe('auth.organization_inactive')
})

describe('the cache', () => {
  test('looks up an unknown key once in 15 seconds', async () => {
    const key = app.unknownKey()
    for (const later of [0, 14_999, 15_000]) {
      app.now.ms = start + later
      expect(await codeOf(key)).toBe('auth.invalid_api_key')
    }
    expect(outcomes).toEqual(['unknown', 'unknown'])
  })

  test('looks up an unknown key again after invalidation', async () => {
    const key = app.unknownKey()
    await codeOf(key)
    app.auth.invalidate()
    await codeOf(key)
    expect(app.counts.lookups).toBe(2)
  })

  test('does not keep a record longer if the clock is set back', async () => {
    const key = app.secret()
    await codeOf(key)
    app.change(key, () => ({ status: 'revoked' }))
    app.now.ms = start - 3_600_000
    expect(await codeOf(key)).toBe('auth.invalid_api_key')
  })
})

/** Starts an app whose lookups wait until the test resolves them. */
async function startHeldLookups() {
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
  endsAt: null,
  organizationStatus: 'active',
}
const revoked: KeyRecord = { ...found, status: 'revoked' }
const turn = () => new Promise((resolve) => setImmediate(resolve))
async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 1000 && !condition(); i++) await turn()
  expect(condition()).toBe(true)
}

test('never accepts a key by the result of a lookup that is older than its revocation', async () => {
  type Step = 'send' | 'revoke' | 'resolve first' | 'resolve last'
  const steps = fc.array(fc.constantFrom<Step>('send', 'revoke', 'resolve first', 'resolve last'), {
    minLength: 4,
    maxLength: 14,
  })
  await fc.assert(
    fc.asyncProperty(steps, async (plan) => {
      let isRevoked = false
      const lookups: { resolve: (record: KeyRecord) => void; record: KeyRecord }[] = []
      app = await startAuthApp(() => ({
        findKey: () =>
          new Promise((resolve) => lookups.push({ resolve, record: isRevoked ? revoked : found })),
      }))
      const key = app.unknownKey()
      const sent: { code: Promise<string | undefined>; after: boolean }[] = []
      for (const step of [...plan, 'send' as const]) {
        if (step === 'send') sent.push({ code: codeOf(key), after: isRevoked })
        if (step === 'revoke') {
          isRevoked = true
          app.auth.invalidate()
        }
        const lookup =
          step === 'resolve first'
            ? lookups.shift()
            : step === 'resolve last'
              ? lookups.pop()
              : undefined
        lookup?.resolve(lookup.record)
        for (let i = 0; i < 8; i++) await turn()
      }
      while (lookups.length > 0) {
        for (const { resolve, record } of lookups.splice(0)) resolve(record)
        for (let i = 0; i < 8; i++) await turn()
      }
      for (const { code, after } of sent) {
        const received = await code
        if (after) expect(received).toBe('auth.invalid_api_key')
        else expect([undefined, 'auth.invalid_api_key']).toContain(received)
      }
    }),
    { numRuns: amount({ few: 40, many: 150 }) },
  )
})

const source = '203.0.113.9'

describe('the budget of a source', () => {
  const guess = (remoteAddress: string) =>
    app.send({ url: '/rest', key: app.unknownKey(), remoteAddress }).then(({ status }) => status)
  const guesses = (count: number, address: string) =>
    Promise.all(Array.from({ length: count }, () => guess(address)))
  const counted = (statuses: number[], status: number) =>
    statuses.filter((other) => other === status).length

  test('allows 50 lookups, then 10 a second, and otherwise returns 429 without X-RateLimit headers', async () => {
    const statuses = await guesses(60, source)
    expect([counted(statuses, 401), counted(statuses, 429)]).toEqual([50, 10])
    expect(app.counts.lookups).toBe(50)
    expect(outcomes.filter((outcome) => outcome === 'refused')).toHaveLength(10)
    const response = await app.send({ url: '/rest', key: app.unknownKey(), remoteAddress: source })
    expect(response).toMatchObject({ status: 429, code: 'rate_limit.exceeded', limits: Array(3) })
    expect([response.headers['retry-after'], response.json.error.retryable]).toEqual(['1', true])
    app.now.ms += 1000
    expect(counted(await guesses(20, source), 401)).toBe(10)
    app.now.ms += 60_000
    expect(counted(await guesses(60, source), 401)).toBe(50)
  })

  test('is not spent by keys that need no lookup or were verified before', async () => {
    const [customer, unknown, remoteAddress] = [app.secret(), app.unknownKey(), source]
    expect(await codeOf(customer, { remoteAddress })).toBeUndefined()
    await codeOf(unknown, { remoteAddress })
    await guesses(49, remoteAddress)
    expect(await guess(remoteAddress)).toBe(429)
    // Keys that are cached, known not to exist, or malformed.
    expect(await codeOf(customer, { remoteAddress })).toBeUndefined()
    expect(await codeOf(unknown, { remoteAddress })).toBe('auth.invalid_api_key')
    expect(await codeOf('sk_live_x', { remoteAddress })).toBe('auth.invalid_api_key')
    // A stale key, which is looked up again.
    app.auth.invalidate()
    const { lookups } = app.counts
    expect(await codeOf(customer, { remoteAddress })).toBeUndefined()
    expect(app.counts.lookups).toBe(lookups + 1)
    // A key that was not verified here before has to wait.
    expect(await codeOf(app.secret(), { remoteAddress })).toBe('rate_limit.exceeded')
    expect(await codeOf(app.secret(), { remoteAddress: '203.0.113.10' })).toBeUndefined()
  })

  test('is spent once by requests that share a lookup', async () => {
    const key = app.unknownKey()
    const remoteAddress = source
    await Promise.all(Array.from({ length: 100 }, () => codeOf(key, { remoteAddress })))
    expect(counted(await guesses(60, remoteAddress), 401)).toBe(49)
  })
})

test('looks up a few guesses at a time, without delaying known keys', async () => {
  const { waiting, send } = await startHeldLookups()
  const customer = app.unknownKey()
  const known = send(customer)
  await until(() => waiting.length === 1)
  waiting.shift()?.(found)
  expect(await known.code()).toBe('works')
  const sent = Array.from({ length: 30 }, () => send(app.unknownKey()))
  await until(() => waiting.length === 4)
  for (let i = 0; i < 20; i++) await turn()
  expect(waiting).toHaveLength(4)
  app.auth.invalidate()
  const again = send(customer)
  await until(() => waiting.length === 5)
  waiting.pop()?.(found)
  expect(await again.code()).toBe('works')
  while (waiting.length > 0) {
    for (const resolve of waiting.splice(0)) resolve(undefined)
    for (let i = 0; i < 8; i++) await turn()
  }
  const codes = await Promise.all(sent.map(({ code }) => code()))
  expect(new Set(codes)).toEqual(new Set(['auth.invalid_api_key']))
})

describe('invalidating one organization', () => {
  const otherRecord = (record: KeyRecord): Partial<KeyRecord> => ({
    principal: { ...record.principal, organizationId: otherOrganization },
  })

  test('looks up only its own keys again', async () => {
    const [own, other] = [app.secret(), app.secret()]
    app.change(other, otherRecord)
    await codeOf(own)
    await codeOf(other)
    for (const key of [own, other]) app.change(key, () => ({ status: 'revoked' }))
    app.auth.invalidate([organizationId])
    expect(await codeOf(own)).toBe('auth.invalid_api_key')
    expect(await codeOf(other)).toBeUndefined()
    app.auth.invalidate([otherOrganization])
    expect(await codeOf(other)).toBe('auth.invalid_api_key')
    expect(app.counts.lookups).toBe(4)
  })

  test('discards the result of a pending lookup', async () => {
    const { waiting, send } = await startHeldLookups()
    const key = app.unknownKey()
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

test('found keys and failed lookups cost a source nothing', async () => {
  for (let i = 0; i < 60; i++)
    expect(await codeOf(app.secret(), { remoteAddress: source })).toBeUndefined()
  const unreachable = Object.assign(new Error('gone'), { code: 'ECONNREFUSED' })
  let down = true
  app = await startAuthApp(() => ({
    findKey: () => (down ? Promise.reject(unreachable) : Promise.resolve(undefined)),
  }))
  for (let i = 0; i < 60; i++)
    expect(await codeOf(app.unknownKey(), { remoteAddress: source })).toBe('service.unavailable')
  down = false
  expect(await codeOf(app.unknownKey(), { remoteAddress: source })).toBe('auth.invalid_api_key')
})
