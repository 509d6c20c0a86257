import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import {
  type Backlog,
  type BacklogStage,
  createAgeTracker,
  watchBacklog,
} from '../../../services/collect/backlog.ts'

describe('the age of the oldest unprocessed record', () => {
  test('counts from when an end beyond the record was first seen', () => {
    const age = createAgeTracker()
    expect(age({ end: 5, next: 5, now: 0 })).toBe(0)
    expect(age({ end: 8, next: 5, now: 100 })).toBe(0)
    expect(age({ end: 9, next: 5, now: 200 })).toBe(100)
    expect(age({ end: 9, next: 8, now: 300 })).toBe(100)
    expect(age({ end: 9, next: 9, now: 400 })).toBe(0)
  })

  test('is at most the true age, and too small by at most the interval between readings', () => {
    const step = fc.record({
      ms: fc.integer({ min: 1, max: 500 }),
      came: fc.nat(5),
      went: fc.nat(5),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
        const age = createAgeTracker()
        const cameAt: number[] = []
        let [now, done] = [0, 0]
        for (const { ms, came, went } of steps) {
          // Records arrive at any time since the last reading; here right after it.
          cameAt.push(...Array<number>(came).fill(now))
          now += ms
          done = Math.min(cameAt.length, done + went)
          const oldest = cameAt[done]
          const read = age({ end: cameAt.length, next: done, now })
          const truly = oldest === undefined ? 0 : now - oldest
          expect(read).toBeLessThanOrEqual(truly)
          expect(read).toBeGreaterThanOrEqual(truly - 500)
        }
      }),
    )
  })

  test('keeps growing while nothing is processed, however long', () => {
    const age = createAgeTracker()
    for (let now = 0; now <= 100_000; now++) expect(age({ end: now + 1, next: 0, now })).toBe(now)
  })

  test('is 0 after the log was restored to an earlier state', () => {
    const age = createAgeTracker()
    age({ end: 1000, next: 10, now: 0 })
    expect(age({ end: 10, next: 10, now: 100 })).toBe(0)
    expect(age({ end: 12, next: 12, now: 200 })).toBe(0)
  })
})

let backlog: Backlog | undefined
afterEach(() => backlog?.stop())

describe('watchBacklog', () => {
  const at = (topic: string, offsets: number[]) =>
    offsets.map((offset, partition) => ({ topic, partition, offset }))

  function start() {
    const ends = { one: [0, 0], two: [0] }
    const done = { one: [0, 0], two: [0] }
    const clock = { ms: 0 }
    let readings = 0
    let failing = false
    const starts = { one: [0, 0], two: [0] }
    const stage = (name: 'one' | 'two'): BacklogStage => ({
      starts: async () => at(name, starts[name]),
      ends: async () => {
        readings++
        if (failing) throw new Error('the log is away')
        return at(name, ends[name])
      },
      committed: async () => at(name, done[name]),
    })
    const watched = watchBacklog({
      stages: [stage('one'), stage('two')],
      onError: () => {},
      clock: () => clock.ms,
      intervalMs: 1,
    })
    backlog = watched
    /** Waits for two more readings, because one may have begun before. */
    const nextReadings = () => {
      const from = readings
      return expect.poll(() => readings).toBeGreaterThanOrEqual(from + 6)
    }
    return {
      starts,
      ends,
      done,
      clock,
      nextReadings,
      ages: watched.ages,
      fail: (value: boolean) => (failing = value),
    }
  }

  test('sums the ages of the stages by partition, and holds the maximum for half a second', async () => {
    const { ends, done, clock, nextReadings, ages } = start()
    ends.one = [3, 0]
    ends.two = [1]
    await nextReadings()
    clock.ms = 700
    await nextReadings()
    expect(ages()).toEqual([1400, 0])
    done.one = [3, 0]
    await nextReadings()
    expect(ages()).toEqual([1400, 0])
    clock.ms = 1201
    await nextReadings()
    expect(ages()).toEqual([1201, 0])
    done.two = [1]
    await nextReadings()
    clock.ms = 1702
    await nextReadings()
    expect(ages()).toEqual([0, 0])
  })

  test('ignores expired records, even if nothing was ever committed', async () => {
    const { starts, ends, clock, nextReadings, ages } = start()
    ends.one = [300, 12]
    starts.one = [300, 10]
    await nextReadings()
    clock.ms = 700
    await nextReadings()
    expect(ages()).toEqual([0, 700])
    starts.one = [300, 12]
    await nextReadings()
    clock.ms = 1400
    await nextReadings()
    expect(ages()).toEqual([0, 0])
  })

  test('returns no ages while reads fail, and recovers', async () => {
    const { ends, clock, nextReadings, ages, fail } = start()
    ends.one = [3, 0]
    await nextReadings()
    clock.ms = 2000
    await nextReadings()
    expect(ages()).toEqual([2000, 0])
    fail(true)
    await nextReadings()
    clock.ms = 60_000
    expect(ages()).toEqual([])
    fail(false)
    await nextReadings()
    expect(ages()).toEqual([60_000, 0])
  })
})
