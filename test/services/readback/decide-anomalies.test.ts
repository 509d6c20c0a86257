import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { MatchCount } from '../../../projections/sessions/anomaly-counts.ts'
import { decideAnomalies, groupRises } from '../../../services/readback/anomalies.ts'
import { findRises, type PeriodComparison } from '../../../services/readback/rises.ts'

const hour = 3_600_000
const now = 100 * 24 * hour

const hourly = (perHour: number, ...last: number[]) => [
  ...Array.from({ length: 24 - last.length }, () => perHour),
  ...last.map((wave) => perHour + wave),
]

/** Returns a value with a usual number of sessions per hour, and more in the last hours. */
const value = (
  name: string,
  perHour: number,
  ...waves: number[]
): PeriodComparison['values'][number] => ({
  field: name.startsWith('/') ? 'page_path' : 'attribution',
  value: name,
  sessions: hourly(perHour, ...waves),
  bots: hourly(0, ...waves),
  baseline: hourly(perHour),
  peak: perHour,
})

/** Returns a value with a factor of its usual number of sessions per hour. */
const risen = (name: string, perHour: number, factor: number) => ({
  ...value(name, perHour),
  sessions: hourly(perHour * factor),
})

/** Returns a day with 100 sessions per hour, and more in the last hours. */
const day = (values: PeriodComparison['values'], ...waves: number[]): PeriodComparison => ({
  since: now - 24 * hour,
  until: now,
  days: 1,
  sessions: hourly(100, ...waves),
  bots: hourly(0, ...waves),
  baseline: hourly(100),
  values,
})

/** Returns matches in the first five minutes of an hour before the end. */
const match = (matched: number[], sessions: number, hoursAgo = 1): MatchCount => {
  const at = now - hoursAgo * hour
  return { at, first: at + 90_000, path: null, matched, sessions }
}

describe('rises', () => {
  const names = (comparison: PeriodComparison) => findRises(comparison).map((rise) => rise.value)

  test('are values with at least 50 sessions and three times their share', () => {
    const values = [value('new', 0, 50), value('few', 0, 49), risen('double', 20, 2)]
    expect(names(day(values))).toEqual(['new'])
    expect(names(day([risen('five times', 1, 5), risen('three times', 1, 3)]))).toEqual([
      'five times',
    ])
  })

  test('are found in hours of a busy day, and have only these', () => {
    const [rise, ...others] = findRises(day([value('tool', 10, 250, 0)], 250, 0))
    expect(others).toEqual([])
    expect(rise).toMatchObject({ since: now - 2 * hour, until: now - hour, sessions: 260 })
  })

  test('have all hours of an attack, whose last hour alone would be none', () => {
    const rises = findRises(day([value('tool', 5, 200, 40, 0)], 200, 40, 0))
    expect(rises).toMatchObject([{ since: now - 3 * hour, until: now - hour, sessions: 250 }])
  })

  test('of a value can be several, if hours between them have its usual sessions', () => {
    const waves = [250, ...hourly(0).slice(12), 250, 0]
    expect(findRises(day([value('tool', 10, ...waves)], ...waves))).toMatchObject([
      { since: now - 15 * hour, until: now - 14 * hour },
      { since: now - 2 * hour, until: now - hour },
    ])
  })

  test('are none if the value has such hours each day, or has more all day', () => {
    const daily = { ...value('crawler', 0, 250, 0), baseline: hourly(0, 250, 0, 0, 0), peak: 250 }
    expect(names(day([daily], 250, 0))).toEqual([])
    const busier = { ...risen('tool', 20, 2.5), peak: 40 }
    busier.sessions[20] = 200
    expect(names(day([busier]))).toEqual([])
  })

  test('are none without a day, or with fewer than 50 sessions, to compare with', () => {
    const comparison = day([value('new', 0, 500)], 500)
    expect(names({ ...comparison, days: 0 })).toEqual([])
    expect(names({ ...comparison, baseline: hourly(0, 49) })).toEqual([])
  })

  test('are no values of everything, and none because others became fewer', () => {
    const usual = day([value('/', 100)])
    expect(names(usual)).toEqual([])
    // The day before had an attack of 24,000 sessions.
    const baseline = usual.baseline.map((sessions) => sessions * 11)
    expect(names({ ...day([value('/', 30)]), baseline })).toEqual([])
  })

  test('expect what the other sessions let expect', () => {
    const [rise] = findRises(day([value('tool', 2, 250)], 250))
    expect(rise?.sessions).toBe(252)
    expect(Math.round(252 - (rise?.expected ?? 0))).toBeGreaterThan(240)
  })

  const usual = fc.array(fc.integer({ min: 0, max: 100 }), { minLength: 1, maxLength: 20 })

  test('are none where now equals before', () => {
    fc.assert(
      fc.property(usual, fc.integer({ min: 1, max: 7 }), (perHour, days) => {
        const comparison = day(perHour.map((n, i) => value(`tool:${i}`, n)))
        const times = (numbers: number[]) => numbers.map((n) => n * days)
        const values = comparison.values.map((count) => ({
          ...count,
          baseline: times(count.baseline),
        }))
        const baseline = times(comparison.baseline)
        expect(findRises({ ...comparison, days, baseline, values })).toEqual([])
      }),
    )
  })

  test('include every wave of at least 50 sessions with a new value', () => {
    fc.assert(
      fc.property(usual, fc.integer({ min: 50, max: 20_000 }), (perHour, wave) => {
        const values = [...perHour.map((n, i) => value(`tool:${i}`, n)), value('/new', 0, wave)]
        expect(names(day(values, wave))).toContain('/new')
      }),
    )
  })
})

describe('anomalies', () => {
  test('have the values of the same sessions, a start, and a series', () => {
    const comparison = day([value('tool', 1, 250), value('/login', 2, 250)], 250)
    const rises = findRises(comparison)
    const [tool, path] = ['tool', '/login'].map((name) =>
      rises.findIndex((rise) => rise.value === name),
    ) as [number, number]
    const matches = [match([tool, path], 250), match([tool], 1), match([path], 2)]
    const [anomaly, ...others] = decideAnomalies(comparison, rises, matches)
    expect(others).toEqual([])
    expect(anomaly).toMatchObject({
      values: [
        { field: 'attribution', value: 'tool', sessions: 251 },
        { field: 'page_path', value: '/login', sessions: 250 },
      ],
      sessions: 251,
      bots: 250,
      startedAt: now - hour + 90_000,
      endedAt: now - hour + 300_000,
    })
    expect(anomaly?.lift).toBeGreaterThan(5)
    expect(anomaly?.botLift).toBeGreaterThan(10)
    expect(anomaly?.series).toHaveLength(24)
    expect(anomaly?.series.at(-1)).toMatchObject({ at: now - hour, sessions: 251 })
    expect(anomaly?.series.at(-1)?.expected).toBeLessThan(2)
  })

  test('name the path of nearly all sessions, though it hardly rises', () => {
    const comparison = day([value('tool', 0, 250)], 250)
    const rises = findRises(comparison)
    const onPath = (path: string, sessions: number): MatchCount => ({
      ...match([0], sessions),
      at: null,
      path,
    })
    const decide = (...paths: MatchCount[]) =>
      decideAnomalies(comparison, rises, [match([0], 250), ...paths])[0]?.values.at(-1)
    expect(decide(onPath('/login', 200), onPath('/', 50))).toEqual({
      field: 'page_path',
      value: '/login',
      sessions: 200,
    })
    expect(decide(onPath('/login', 150), onPath('/', 100))).toMatchObject({ value: 'tool' })
  })

  test('of different sessions are apart, highest lift first, and at most five', () => {
    const waves = [60, 120, 300, 90, 70, 200]
    const comparison = day(
      waves.map((wave, i) => value(i % 2 ? `tool:${i}` : `/${i}`, 0, wave)),
      840,
    )
    const rises = findRises(comparison)
    const matches = rises.map(({ sessions }, i) => match([i], sessions))
    expect(decideAnomalies(comparison, rises, matches).map(({ sessions }) => sessions)).toEqual([
      300, 200, 120, 90, 70,
    ])
  })

  test('have every rise and every session exactly once', () => {
    const combination = fc.record({
      matched: fc.uniqueArray(fc.nat(5), { minLength: 1 }),
      sessions: fc.integer({ min: 50, max: 500 }),
    })
    fc.assert(
      fc.property(fc.array(combination, { minLength: 1, maxLength: 8 }), (combinations) => {
        const total = combinations.reduce((sum, { sessions }) => sum + sessions, 0)
        const waves = [0, 1, 2, 3, 4, 5].map((i) =>
          combinations
            .filter(({ matched }) => matched.includes(i))
            .reduce((sum, { sessions }) => sum + sessions, 0),
        )
        const values = waves.map((wave, i) => value(i % 2 ? `tool:${i}` : `/${i}`, 0, wave))
        const rises = findRises(day(values, total))
        const indexOf = (i: number) => rises.findIndex((rise) => rise.value === values[i]?.value)
        const matches = combinations.map(({ matched, sessions }) =>
          match(matched.map(indexOf), sessions),
        )
        const groups = groupRises(rises, matches)
        expect(groups.flat().toSorted()).toEqual(rises.map((_, i) => i))
        const grouped = matches.filter(({ matched }) =>
          groups.some((group) => group.some((i) => matched.includes(i))),
        )
        expect(grouped).toEqual(matches)
      }),
    )
  })
})
