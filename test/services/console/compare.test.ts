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

const rises = (current: SessionAggregates, previous: SessionAggregates) =>
  findRises('country', current, previous)

describe('rises', () => {
  test('are values with at least 50 sessions, and three times as many as before', () => {
    const now = counts({ DE: 300, FR: 299, NL: 150, IT: 50, ES: 49 })
    const before = counts({ DE: 100, FR: 100, NL: 51 })
    expect(rises(now, before)).toEqual([
      { value: 'DE', sessions: 300, previousSessions: 100 },
      { value: 'IT', sessions: 50, previousSessions: 0 },
    ])
  })

  test('assume the smallest separate count of the day before for values that were among "other"', () => {
    const before = counts({ FR: 900, NL: 40 }, { other: 500 })
    expect(rises(counts({ DE: 119, IT: 120 }), before)).toEqual([
      { value: 'IT', sessions: 120, previousSessions: 40 },
    ])
  })

  test('are none if the counts are incomplete, or for sessions without a value', () => {
    const now = counts({ DE: 300 })
    expect(rises(now, counts({}, { is_complete: false }))).toEqual([])
    expect(rises({ ...now, is_complete: false }, counts({}))).toEqual([])
    const none = { start: null, kind: 'value' as const, values: { country: null }, sessions: 300 }
    expect(rises({ ...now, groups: [none] }, counts({}))).toEqual([])
  })
})

test('the previous period covers the same times of day', () => {
  expect(previousPeriod(span(48 * hour, 49 * hour))).toEqual(span(24 * hour, 25 * hour))
  expect(previousPeriod(span(24 * hour, 48 * hour))).toEqual(span(0, 24 * hour))
  expect(previousPeriod(span(96 * hour, 121 * hour))).toEqual(span(48 * hour, 73 * hour))
})

test('the last day of a period is the entire period if it is shorter', () => {
  expect(lastDay(span(0, 72 * hour))).toEqual(span(48 * hour, 72 * hour))
  expect(lastDay(span(0, hour))).toEqual(span(0, hour))
})

test('hosts are ordered by sessions that were never handed off', () => {
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
