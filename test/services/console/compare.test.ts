import { describe, expect, test } from 'vitest'
import {
  findRises,
  lastDay,
  missingHandOffs,
  previousPeriod,
} from '../../../services/console/pages/overview/compare.ts'
import type { SessionAggregates } from '../../../services/readback/schemas/aggregates.ts'

const hour = 3_600_000
const span = (since: number, until: number) => ({ since, until, last: undefined })

const counts = (
  sessions: Record<string, number>,
  { other = 0, is_complete = true } = {},
): SessionAggregates => ({
  object: 'session_aggregates',
  since: '',
  until: '',
  is_complete,
  sessions: 0,
  ended: 0,
  visitors: null,
  users: null,
  distinct_missing: null,
  groups: [
    ...Object.entries(sessions).map(([country, sessions]) => ({
      start: null,
      kind: 'value' as const,
      values: { country },
      sessions,
    })),
    ...(other > 0 ? [{ start: null, kind: 'other' as const, values: {}, sessions: other }] : []),
  ],
})

const rises = (now: SessionAggregates, before: SessionAggregates) =>
  findRises('country', now, before)

describe('unusual is', () => {
  test('what has at least 50 sessions and three times those before', () => {
    const now = counts({ DE: 300, FR: 299, NL: 150, IT: 50, ES: 49 })
    const before = counts({ DE: 100, FR: 100, NL: 51 })
    expect(rises(now, before)).toEqual([
      { value: 'DE', sessions: 300, before: 100 },
      { value: 'IT', sessions: 50, before: 0 },
    ])
  })

  test('what the day before did not count by itself only if it was few at most', () => {
    const before = counts({ FR: 900, NL: 40 }, { other: 500 })
    expect(rises(counts({ DE: 119, IT: 120 }), before)).toEqual([
      { value: 'IT', sessions: 120, before: 40 },
    ])
  })

  test('nothing where not all sessions could be read, or where there is no value', () => {
    const now = counts({ DE: 300 })
    expect(rises(now, counts({}, { is_complete: false }))).toEqual([])
    expect(rises({ ...now, is_complete: false }, counts({}))).toEqual([])
    const none = { start: null, kind: 'value' as const, values: { country: null }, sessions: 300 }
    expect(rises({ ...now, groups: [none] }, counts({}))).toEqual([])
  })
})

test('the time before begins and ends at the same time of day', () => {
  expect(previousPeriod(span(48 * hour, 49 * hour))).toEqual(span(24 * hour, 25 * hour))
  expect(previousPeriod(span(24 * hour, 48 * hour))).toEqual(span(0, 24 * hour))
  expect(previousPeriod(span(96 * hour, 121 * hour))).toEqual(span(48 * hour, 73 * hour))
})

test('the time before is compared with the last day of a longer one', () => {
  expect(lastDay(span(0, 72 * hour))).toEqual(span(48 * hour, 72 * hour))
  expect(lastDay(span(0, hour))).toEqual(span(0, hour))
})

test('pages are in the order of their hand-offs that never came', () => {
  const group = (page_host: string | null, handed_off: string, sessions: number) => ({
    start: null,
    kind: 'value' as const,
    values: { page_host, handed_off },
    sessions,
  })
  const groups = [
    group('a.example', 'true', 90),
    group('b.example', 'false', 20),
    group('a.example', 'false', 10),
    group('c.example', 'true', 5),
    group(null, 'false', 7),
  ]
  expect(missingHandOffs({ groups })).toEqual([
    { host: 'b.example', sessions: 20, missing: 20 },
    { host: 'a.example', sessions: 100, missing: 10 },
  ])
})
