import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { DueEndpoint } from '../../../../services/webhooks/dispatch/due.ts'
import { createWindows } from '../../../../services/webhooks/dispatch/window.ts'

interface Kind {
  /** How long a request takes (milliseconds). */
  takesMs: number
  answered: boolean
}

const fast: Kind = { takesMs: 20, answered: true }
const slow: Kind = { takesMs: 1100, answered: true }
const dead: Kind = { takesMs: 15_000, answered: false }

interface Simulated extends Kind {
  endpointId: string
  organizationId: string
  /** From when on its requests stall until they time out (milliseconds); Infinity for never. */
  stallsAt: number
}

interface Request extends Simulated {
  endsAt: number
}

const stepMs = 20
/** Between two requests that nobody answers. */
const pauseMs = 1000

/** A process whose endpoints all have endless backlogs, on a clock of its own. */
function simulate(endpoints: Simulated[], slots = 256) {
  let now = 0
  let running: Request[] = []
  const windows = createWindows({ slots, now: () => now })
  const begun = new Map(endpoints.map(({ endpointId }) => [endpointId, 0]))
  const due: DueEndpoint[] = endpoints.map(({ endpointId, organizationId }) => ({
    endpointId,
    organizationId,
    due: 20,
  }))
  const byId = new Map(endpoints.map((endpoint) => [endpoint.endpointId, endpoint]))

  function end(): void {
    const ended = running.filter(({ endsAt }) => endsAt <= now)
    running = running.filter(({ endsAt }) => endsAt > now)
    for (const { endpointId, answered, takesMs } of ended)
      windows.ended(endpointId, { answered, durationMs: takesMs })
  }

  function begin(endpointId: string): void {
    const endpoint = byId.get(endpointId)
    if (!endpoint) throw new Error(`${endpointId} is not due`)
    windows.began(endpointId)
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
        const { rooms } = windows.choose(due, slots - running.length)
        for (const { endpointId, room } of rooms) for (let i = 0; i < room; i++) begin(endpointId)
        if (running.length > slots) throw new Error(`${running.length} requests in ${slots} slots`)
      }
    },
  }
}

const group = (name: string, count: number, kind: Kind, some: Partial<Simulated> = {}): Simulated[] =>
  Array.from({ length: count }, (_, i) => {
    const endpointId = `${name}${String(i).padStart(4, '0')}`
    return { endpointId, organizationId: endpointId, stallsAt: Infinity, ...kind, ...some }
  })

const countsOf = (begun: Map<string, number>, name: string) =>
  [...begun].flatMap(([id, count]) => (id.startsWith(name) ? [count] : []))

describe('with endless backlogs', () => {
  test('slow endpoints get equal shares, however many they are', () => {
    const world = simulate(group('slow', 30, slow))
    world.runFor(20_000)
    const counts = countsOf(world.begun, 'slow')
    expect(Math.min(...counts)).toBeGreaterThan(0.8 * Math.max(...counts))
  })

  test('slow ones among dead ones get their share, and fast ones theirs', () => {
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

  test('endpoints that answered and then all stall leave slots to the others at once', () => {
    const world = simulate([...group('stall', 40, fast, { stallsAt: 1000 }), ...group('fast', 20, fast)])
    world.runFor(1000)
    const before = countsOf(world.begun, 'fast')
    world.runFor(3000)
    const during = countsOf(world.begun, 'fast').map((count, i) => count - (before[i] ?? 0))
    expect(Math.min(...during)).toBeGreaterThan(0.9 * (3000 / stepMs))
  })

  test('one organization holds a quarter of the slots at most', () => {
    const world = simulate([
      ...group('many', 20, fast, { organizationId: 'org', stallsAt: 1000 }),
      ...group('fast', 5, fast),
    ])
    world.runFor(3000)
    expect(world.running().filter(({ organizationId }) => organizationId === 'org')).toHaveLength(64)
    expect(Math.min(...countsOf(world.begun, 'fast'))).toBeGreaterThan((5 * 3000) / stepMs)
  })
})

/** Whatever is due, each endpoint is chosen again after so many times as all that stand before it can take. */
test('every due endpoint gets its turn in bounded time, whatever mix of fast, slow and dead ones there is', () => {
  const kinds = fc.constantFrom(fast, slow, dead)
  const mix = fc.array(fc.record({ kind: kinds, organization: fc.integer({ min: 0, max: 30 }) }), {
    minLength: 1,
    maxLength: 150,
  })
  fc.assert(
    fc.property(mix, fc.integer({ min: 8, max: 64 }), (all, slots) => {
      const endpoints = all.map(({ kind, organization }, i) => {
        const ids = { endpointId: `we_${i}`, organizationId: `org_${organization}` }
        return { ...kind, ...ids, stallsAt: Infinity }
      })
      const world = simulate(endpoints, slots)
      // Where all that compete are dead and of one organization, they take turns at a quarter of the slots.
      const turns = Math.ceil(all.length / Math.floor(slots / 4)) + 1
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
