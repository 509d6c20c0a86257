import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  createConcurrencyLimits,
  nextLimit,
} from '../../../../services/webhooks/dispatch/concurrency.ts'
import type { DueEndpoint } from '../../../../services/webhooks/leases.ts'

const answered = { gotResponse: true, durationMs: 20 }
const silence = { gotResponse: false, durationMs: 15_000 }
const backlog = (endpointId: string, organizationId = endpointId): DueEndpoint => ({
  endpointId,
  organizationId,
  due: 20,
})
const ids = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`)

test('a response raises the limit by one, up to ten; no response halves it, down to one', () => {
  const limits = [2]
  for (const end of [...Array(10).fill(answered), silence, silence, silence, silence, answered])
    limits.push(nextLimit({ limit: limits.at(-1) ?? 0, pauseMs: 0 }, end).limit)
  expect(limits).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 5, 2, 1, 1, 2])
})

test.each([
  [1001, true],
  [1000, false],
])('an endpoint that responds after %i ms is slow: %s', (durationMs, isSlow) => {
  const next = nextLimit({ limit: 3, pauseMs: 0 }, { gotResponse: true, durationMs })
  expect(next).toMatchObject({ isSlow })
})

test('a quota excludes running requests, and is available again when they end', () => {
  const limits = createConcurrencyLimits()
  const quotas = () => limits.allocate([backlog('a')], 200).quotas
  expect(quotas()).toEqual([{ endpointId: 'a', max: 2 }])
  limits.onBegin('a')
  limits.onBegin('a')
  expect(quotas()).toEqual([])
  limits.onEnd('a')
  expect(quotas()).toEqual([{ endpointId: 'a', max: 1 }])
  limits.onEnd('a', answered)
  expect(quotas()).toEqual([{ endpointId: 'a', max: 3 }])
})

test('a quota never exceeds the number of due deliveries', () => {
  const limits = createConcurrencyLimits()
  const allocate = (due: number) => limits.allocate([{ ...backlog('a'), due }], 200)
  const quotas = [{ endpointId: 'a', max: 1 }]
  expect(allocate(1)).toEqual({ quotas, hasMore: false })
  limits.onBegin('a')
  expect(allocate(3)).toEqual({ quotas, hasMore: true })
})

test('endpoints that do not respond never use more than half of the capacity, however many they are', () => {
  const capacity = 16
  let now = 0
  const limits = createConcurrencyLimits({ capacity, now: () => now })
  const dead = ids('dead', 100)
  for (const id of dead) {
    limits.onBegin(id)
    limits.onEnd(id, silence)
  }
  now += 1000
  const due = dead.map((id) => backlog(id))
  const first = limits.allocate(due, capacity).quotas
  expect(first).toEqual(dead.slice(0, 8).map((endpointId) => ({ endpointId, max: 1 })))
  for (const { endpointId } of first) limits.onBegin(endpointId)
  expect(limits.allocate([...due, backlog('new')], 8).quotas).toEqual([
    { endpointId: 'new', max: 2 },
  ])
})

test('an endpoint that does not respond is paused, up to a second, until it responds', () => {
  let now = 0
  const limits = createConcurrencyLimits({ now: () => now })
  const isPausing = () => {
    const { quotas, hasMore } = limits.allocate([backlog('a')], 256)
    expect(hasMore).toBe(true)
    return quotas.length === 0
  }
  const pauses: number[] = []
  for (const end of [...Array(7).fill(silence), answered, silence]) {
    limits.onBegin('a')
    limits.onEnd('a', end)
    const begun = now
    while (isPausing()) now += 10
    pauses.push(now - begun)
  }
  expect(pauses).toEqual([50, 100, 200, 400, 800, 1000, 1000, 0, 50])
})

interface Kind {
  takesMs: number
  gotResponse: boolean
}

const fast: Kind = { takesMs: 20, gotResponse: true }
const slow: Kind = { takesMs: 1100, gotResponse: true }
const dead: Kind = { takesMs: 15_000, gotResponse: false }

interface Simulated extends Kind {
  endpointId: string
  organizationId: string
  /** Time from which its requests stall until they time out (milliseconds); Infinity for never. */
  stallsAt: number
}

const stepMs = 20
const pauseMs = 1000

/** Simulates a process whose endpoints all have endless backlogs. */
function simulate(endpoints: Simulated[], capacity = 256) {
  let now = 0
  let running: (Simulated & { endsAt: number })[] = []
  const limits = createConcurrencyLimits({ capacity, now: () => now })
  const begun = new Map(endpoints.map(({ endpointId }) => [endpointId, 0]))
  const due = endpoints.map(({ endpointId, organizationId }) => backlog(endpointId, organizationId))
  const byId = new Map(endpoints.map((endpoint) => [endpoint.endpointId, endpoint]))

  function end(): void {
    const ended = running.filter(({ endsAt }) => endsAt <= now)
    running = running.filter(({ endsAt }) => endsAt > now)
    for (const { endpointId, gotResponse, takesMs } of ended)
      limits.onEnd(endpointId, { gotResponse, durationMs: takesMs })
  }

  function begin(endpointId: string): void {
    const endpoint = byId.get(endpointId)
    if (!endpoint) throw new Error(`${endpointId} is not due`)
    limits.onBegin(endpointId)
    begun.set(endpointId, (begun.get(endpointId) ?? 0) + 1)
    const kind = now >= endpoint.stallsAt ? dead : endpoint
    running.push({ ...endpoint, ...kind, endsAt: now + kind.takesMs })
  }

  return {
    begun,
    running: () => running,
    runFor(ms: number): void {
      for (const until = now + ms; now < until; now += stepMs) {
        end()
        const { quotas } = limits.allocate(due, capacity - running.length)
        for (const { endpointId, max } of quotas) for (let i = 0; i < max; i++) begin(endpointId)
        if (running.length > capacity)
          throw new Error(`${running.length} requests in ${capacity} capacity`)
      }
    },
  }
}

const group = (
  name: string,
  count: number,
  kind: Kind,
  some: Partial<Simulated> = {},
): Simulated[] =>
  Array.from({ length: count }, (_, i) => {
    const endpointId = `${name}${String(i).padStart(4, '0')}`
    return { endpointId, organizationId: endpointId, stallsAt: Infinity, ...kind, ...some }
  })

const countsOf = (begun: Map<string, number>, name: string) =>
  [...begun].flatMap(([id, count]) => (id.startsWith(name) ? [count] : []))

describe('with endless backlogs', () => {
  test('slow endpoints get their share beside dead ones, and fast ones theirs', () => {
    const world = simulate([
      ...group('dead', 60, dead),
      ...group('slow', 30, slow),
      ...group('fast', 20, fast),
    ])
    world.runFor(60_000)
    const [slows, fasts] = [countsOf(world.begun, 'slow'), countsOf(world.begun, 'fast')]
    expect(Math.min(...slows)).toBeGreaterThan(60)
    expect(Math.min(...slows)).toBeGreaterThan(0.5 * Math.max(...slows))
    expect(Math.min(...fasts)).toBeGreaterThan(60_000 / stepMs)
    expect(Math.min(...countsOf(world.begun, 'dead'))).toBeGreaterThan(1)
  })

  test('endpoints that responded and then all stall leave capacity to the others at once', () => {
    const world = simulate([
      ...group('stall', 40, fast, { stallsAt: 1000 }),
      ...group('fast', 20, fast),
    ])
    world.runFor(1000)
    const before = countsOf(world.begun, 'fast')
    world.runFor(3000)
    const during = countsOf(world.begun, 'fast').map((count, i) => count - (before[i] ?? 0))
    expect(Math.min(...during)).toBeGreaterThan(0.9 * (3000 / stepMs))
  })

  test('one organization uses at most a quarter of the capacity', () => {
    const world = simulate([
      ...group('many', 20, fast, { organizationId: 'org', stallsAt: 1000 }),
      ...group('fast', 5, fast),
    ])
    world.runFor(3000)
    expect(world.running().filter(({ organizationId }) => organizationId === 'org')).toHaveLength(
      64,
    )
    expect(Math.min(...countsOf(world.begun, 'fast'))).toBeGreaterThan((5 * 3000) / stepMs)
  })
})

/** Checks that each endpoint gets a turn after at most the turns that those before it can take. */
test('every due endpoint gets a turn in bounded time, whatever the mix of fast, slow and dead ones', () => {
  const kinds = fc.constantFrom(fast, slow, dead)
  const mix = fc.array(fc.record({ kind: kinds, organization: fc.integer({ min: 0, max: 30 }) }), {
    minLength: 1,
    maxLength: 150,
  })
  fc.assert(
    fc.property(mix, fc.integer({ min: 8, max: 64 }), (all, capacity) => {
      const endpoints = all.map(({ kind, organization }, i) => {
        const ids = { endpointId: `we_${i}`, organizationId: `org_${organization}` }
        return { ...kind, ...ids, stallsAt: Infinity }
      })
      const world = simulate(endpoints, capacity)
      // If all competitors are dead and belong to one organization, they share a quarter of the capacity.
      const turns = Math.ceil(all.length / Math.floor(capacity / 4)) + 1
      for (let i = 0; i < 2; i++) {
        const before = [...world.begun.values()]
        world.runFor(turns * (dead.takesMs + pauseMs + stepMs))
        const gained = [...world.begun.values()].map((count, j) => count - (before[j] ?? 0))
        expect(Math.min(...gained)).toBeGreaterThan(0)
      }
    }),
    { numRuns: 15 },
  )
}, 60_000)
