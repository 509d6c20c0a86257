import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { MatchCount } from '../../../projections/sessions/anomaly-counts.ts'
import {
  decideAnomalies,
  findRises,
  groupRises,
  type PeriodComparison,
} from '../../../services/readback/anomalies.ts'

const hour = 3_600_000
const now = 100 * 24 * hour

/** Returns a value with a usual number of sessions per hour, and more in the last hour. */
const value = (name: string, perHour: number, wave = 0): PeriodComparison['values'][number] => ({
  field: name.startsWith('/') ? 'page_path' : 'attribution',
  value: name,
  sessions: 24 * perHour + wave,
  bots: wave,
  baseline: Array.from({ length: 24 }, () => perHour),
})

/** Returns a day with 100 sessions per hour, and more in the last hour. */
const day = (values: PeriodComparison['values'], wave = 0): PeriodComparison => ({
  since: now - 24 * hour,
  until: now,
  days: 1,
  sessions: 2400 + wave,
  bots: wave,
  baseline: Array.from({ length: 24 }, () => 100),
  values,
})

/** Returns matches in the first five minutes of an hour before the end. */
const match = (matched: number[], sessions: number, hoursAgo = 1): MatchCount => {
  const at = now - hoursAgo * hour
  return { at, first: at + 90_000, path: null, matched, sessions }
}
const matchesOf = (wave: number[], sessions: number, usual: [number, number][] = []) => [
  ...usual.flatMap(([index, perHour]) =>
    Array.from({ length: 24 }, (_, i) => match([index], perHour, i + 1)),
  ),
  match(wave, sessions),
]

describe('rises', () => {
  const names = (comparison: PeriodComparison) => findRises(comparison).map((rise) => rise.value)

  test('are values with at least 50 sessions and three times their share', () => {
    const values = [value('many', 20, 500), value('new', 0, 50), value('few', 0, 49)]
    expect(names(day([...values, value('double', 20, 480)], 0))).toEqual(['new'])
    expect(names(day([value('triple', 1, 90), value('not', 1, 50)], 90))).toEqual(['triple'])
  })

  test('are none without a day, or with fewer than 50 sessions, to compare with', () => {
    const comparison = day([value('new', 0, 500)], 500)
    expect(names({ ...comparison, days: 0 })).toEqual([])
    expect(names({ ...comparison, baseline: [49] })).toEqual([])
  })

  test('are no values of everything, and none because others became fewer', () => {
    const usual = day([value('/', 100)])
    expect(names({ ...usual, sessions: 2400 })).toEqual([])
    // The day before had an attack of 24,000 sessions.
    const baseline = usual.baseline.map((sessions) => sessions * 11)
    expect(names({ ...day([value('/', 30)]), baseline })).toEqual([])
  })

  test('expect what the other sessions let expect', () => {
    const [rise] = findRises(day([value('tool', 2, 250)], 250))
    expect(rise?.sessions).toBe(298)
    expect(Math.round(298 - (rise?.expected ?? 0))).toBeGreaterThan(235)
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
    const matches = matchesOf([tool, path], 250, [
      [tool, 1],
      [path, 2],
    ])
    const [anomaly, ...others] = decideAnomalies(comparison, rises, matches)
    expect(others).toEqual([])
    expect(anomaly).toMatchObject({
      values: [
        { field: 'attribution', value: 'tool', sessions: 274 },
        { field: 'page_path', value: '/login', sessions: 250 },
      ],
      sessions: 274,
      bots: 250,
      startedAt: now - hour + 90_000,
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
