import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createFairShare, fairLevel } from '../../../infra/access/fair-share.ts'
import { createMemoryLimiter, type MemoryLimiter } from '../../support/memory-limiter.ts'
import { type AuthApp, startAuthApp } from './auth-app.ts'

describe('fairLevel', () => {
  const requests = fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 50 })
  const grantedAt = (level: number, amounts: number[]) =>
    amounts.reduce((total, amount) => total + Math.min(amount, level), 0)

  test('grants the total, or all requests if they are less', () => {
    fc.assert(
      fc.property(requests, fc.integer({ min: 0, max: 60_000 }), (amounts, total) => {
        const requested = grantedAt(Number.POSITIVE_INFINITY, amounts)
        expect(grantedAt(fairLevel(amounts, total), amounts)).toBeCloseTo(
          Math.min(requested, total),
        )
      }),
    )
  })

  test('is never below an equal share of the total', () => {
    fc.assert(
      fc.property(requests, fc.integer({ min: 0, max: 60_000 }), (amounts, total) => {
        expect(fairLevel(amounts, total)).toBeGreaterThanOrEqual(total / amounts.length - 1e-9)
      }),
    )
  })

  test.each([0, -1, -3000])('is 0 for a total of %d', (total) => {
    expect(fairLevel([1, 2], total)).toBe(0)
  })
})

const limit = 60
const flood = '192.0.2.1'
const visitors = ['198.51.100.1', '198.51.100.2', '198.51.100.3', '2001:db8::1']

interface Outcome {
  remoteAddress: string
  status: number
  limits: unknown[]
  retryAfter: unknown
}

async function startApp() {
  let limiter: MemoryLimiter | undefined
  const app = await startAuthApp((now) => {
    limiter = createMemoryLimiter(() => now.ms)
    return { limiter }
  })
  const key = app.publishable({ rateLimit: limit })
  const outcomes: Outcome[] = []
  const request = async (remoteAddress: string) => {
    const { status, limits, headers } = await app.send({ url: '/collect', key, remoteAddress })
    outcomes.push({ remoteAddress, status, limits, retryAfter: headers['retry-after'] })
  }
  return { app, request, outcomes, spent: () => limiter?.consumed.length ?? 0 }
}

/** Sends five requests a second from the flooding source, and one every 20 seconds from each visitor. */
async function run(
  { app, request }: { app: AuthApp; request: (from: string) => Promise<void> },
  seconds: number,
) {
  for (let second = 0; second < seconds; second++) {
    for (let i = 0; i < 5; i++) await request(flood)
    const visitor = second % 5 === 0 ? visitors[(second / 5) % visitors.length] : undefined
    if (visitor) await request(visitor)
    app.now.ms += 1000
  }
}

const outcomesOf = (outcomes: Outcome[], addresses: string[]) =>
  outcomes.filter(({ remoteAddress }) => addresses.includes(remoteAddress))

describe('a bucket that several sources use', () => {
  test('is not exhausted by one of them: the others are never rejected', async () => {
    const world = await startApp()
    await run(world, 300)
    expect(outcomesOf(world.outcomes, visitors).filter(({ status }) => status !== 200)).toEqual([])
    const refused = outcomesOf(world.outcomes, [flood]).filter(({ status }) => status === 429)
    // The bucket has 60 units and gains one a second: after 60 for the visitors, 300 are left for the flood.
    expect(5 * 300 - refused.length).toBeGreaterThan(240)
    // Rejected requests cost nothing, and their responses have no rate-limit headers.
    for (const { limits, retryAfter } of refused)
      expect([limits, retryAfter]).toEqual([Array(3).fill(undefined), '1'])
    expect(world.spent()).toBe(world.outcomes.length - refused.length)
  })

  test('recovers from the debt of one source once another sends requests', async () => {
    const world = await startApp()
    // The deepest possible debt of a bucket.
    for (let i = 0; i < 2 * limit; i++) await world.request(flood)
    const visit = async () => {
      await world.request(visitors[0] ?? '')
      return world.outcomes.at(-1)?.status
    }
    expect(await visit()).toBe(429)
    await run(world, 90)
    expect(await visit()).toBe(200)
  })

  test('is shared fairly by processes that do not know what the others granted', () => {
    let now = 0
    const shares = Array.from({ length: 4 }, () =>
      createFairShare({ clock: () => now, windowMs: 60_000 }),
    )
    let left = 3000
    const refused = { flood: 0, visitors: 0 }
    for (let i = 0; i < 200_000; i++) {
      now++
      left = Math.min(3000, left + 0.05)
      const isVisitor = i % 100 === 0
      const [kind, party] = isVisitor
        ? (['visitors', `v${(i / 100) % 20}`] as const)
        : (['flood', 'f'] as const)
      const share = shares[i % 4]
      const isAdmitted = share?.admit(party, left < 1500 ? () => 2 * left : undefined)
      if (isAdmitted && left >= 1) left--
      else refused[kind]++
    }
    expect(refused.visitors).toBe(0)
    expect(refused.flood).toBeGreaterThan(150_000)
  })
})

test('a single source can use the whole bucket, and its 429 has rate-limit headers', async () => {
  const { request, outcomes, spent } = await startApp()
  for (let i = 0; i < limit + 2; i++) await request(flood)
  expect(outcomes.slice(0, limit).map(({ status }) => status)).toEqual(Array(limit).fill(200))
  expect(outcomes.slice(limit)).toMatchObject([
    { status: 429, limits: ['60', '0', '1'], retryAfter: '2' },
    { status: 429, limits: ['60', '0', '1'], retryAfter: '3' },
  ])
  expect(spent()).toBe(limit + 2)
})

test('a source can use the whole bucket again some time after the last request of another', async () => {
  const { app, request, outcomes } = await startApp()
  await request(visitors[0] ?? '')
  app.now.ms += 15 * 60_000
  for (let i = 0; i < limit; i++) await request(flood)
  expect(outcomes.every(({ status }) => status === 200)).toBe(true)
})
