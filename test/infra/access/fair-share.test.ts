import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createFairShare, fairLevel } from '../../../infra/access/fair-share.ts'
import { createMemoryLimiter, type MemoryLimiter } from '../../support/memory-limiter.ts'
import { type AuthApp, startAuthApp } from './auth-app.ts'

describe('the level up to which each party gets what it asks for', () => {
  const asked = fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 50 })
  const upTo = (some: number[], level: number) =>
    some.reduce((all, one) => all + Math.min(one, level), 0)

  test('gives out the total, or everything that is asked for', () => {
    fc.assert(
      fc.property(asked, fc.integer({ min: 0, max: 60_000 }), (some, total) => {
        const all = upTo(some, Number.POSITIVE_INFINITY)
        expect(upTo(some, fairLevel(some, total))).toBeCloseTo(Math.min(all, total))
      }),
    )
  })

  test('is never less than an equal part of the total', () => {
    fc.assert(
      fc.property(asked, fc.integer({ min: 0, max: 60_000 }), (some, total) => {
        expect(fairLevel(some, total)).toBeGreaterThanOrEqual(total / some.length - 1e-9)
      }),
    )
  })

  test.each([0, -1, -3000])('is nothing where the total is %d', (total) => {
    expect(fairLevel([1, 2], total)).toBe(0)
  })
})

const limit = 60
const flood = '192.0.2.1'
const visitors = ['198.51.100.1', '198.51.100.2', '198.51.100.3', '2001:db8::1']

interface Asked {
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
  const answers: Asked[] = []
  const ask = async (remoteAddress: string) => {
    const { status, limits, headers } = await app.send({ url: '/collect', key, remoteAddress })
    answers.push({ remoteAddress, status, limits, retryAfter: headers['retry-after'] })
  }
  return { app, ask, answers, spent: () => limiter?.consumed.length ?? 0 }
}

/** A second at a time: five requests of the flood, and one of each visitor in 20 seconds. */
async function run(
  { app, ask }: { app: AuthApp; ask: (from: string) => Promise<void> },
  seconds: number,
) {
  for (let second = 0; second < seconds; second++) {
    for (let i = 0; i < 5; i++) await ask(flood)
    const visitor = second % 5 === 0 ? visitors[(second / 5) % visitors.length] : undefined
    if (visitor) await ask(visitor)
    app.now.ms += 1000
  }
}

const of = (answers: Asked[], addresses: string[]) =>
  answers.filter(({ remoteAddress }) => addresses.includes(remoteAddress))

describe('a bucket that several sources ask for', () => {
  test('is not used up by one of them: the others are refused nothing', async () => {
    const world = await startApp()
    await run(world, 300)
    expect(of(world.answers, visitors).filter(({ status }) => status !== 200)).toEqual([])
    const refused = of(world.answers, [flood]).filter(({ status }) => status === 429)
    // What the visitors leave of 60 at once and one a second is 300, of which the flood may have all but the rest.
    expect(5 * 300 - refused.length).toBeGreaterThan(240)
    // It is charged nothing for what it is refused, and told nothing of the units.
    for (const { limits, retryAfter } of refused)
      expect([limits, retryAfter]).toEqual([Array(3).fill(undefined), '1'])
    expect(world.spent()).toBe(world.answers.length - refused.length)
  })

  test('recovers from what one of them used up alone, once another asks', async () => {
    const world = await startApp()
    // As deep in debt as a bucket can be.
    for (let i = 0; i < 2 * limit; i++) await world.ask(flood)
    const visit = async () => {
      await world.ask(visitors[0] ?? '')
      return world.answers.at(-1)?.status
    }
    expect(await visit()).toBe(429)
    await run(world, 90)
    expect(await visit()).toBe(200)
  })

  test('is asked for by several processes, of which none knows what the others gave', () => {
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
      const [who, party] = isVisitor
        ? (['visitors', `v${(i / 100) % 20}`] as const)
        : (['flood', 'f'] as const)
      const share = shares[i % 4]
      const isAdmitted = share?.admit(party, left < 1500 ? () => 2 * left : undefined)
      if (isAdmitted && left >= 1) left--
      else refused[who]++
    }
    expect(refused.visitors).toBe(0)
    expect(refused.flood).toBeGreaterThan(150_000)
  })
})

test('a bucket that one source alone asks for is all its own, and refuses with what is left of it', async () => {
  const { ask, answers, spent } = await startApp()
  for (let i = 0; i < limit + 2; i++) await ask(flood)
  expect(answers.slice(0, limit).map(({ status }) => status)).toEqual(Array(limit).fill(200))
  expect(answers.slice(limit)).toMatchObject([
    { status: 429, limits: ['60', '0', '1'], retryAfter: '2' },
    { status: 429, limits: ['60', '0', '1'], retryAfter: '3' },
  ])
  expect(spent()).toBe(limit + 2)
})

test('a bucket that one source alone asks for is all its own again some time after another asked', async () => {
  const { app, ask, answers } = await startApp()
  await ask(visitors[0] ?? '')
  app.now.ms += 15 * 60_000
  for (let i = 0; i < limit; i++) await ask(flood)
  expect(answers.every(({ status }) => status === 200)).toBe(true)
})
