import { describe, expect, test } from 'vitest'
import {
  hasInvalidTimes,
  shiftSpan,
  spanOf,
  type TimeSpan,
  timeParameters,
  toFieldValue,
  widenSpan,
} from '../../../services/console/pages/shared/span.ts'

const hour = 3_600_000
const day = 24 * hour
const now = Date.parse('2026-11-27T14:30:00Z')
const absolute = (since: number, until: number): TimeSpan => ({ since, until, last: undefined })
const lastDay: TimeSpan = { since: now - day, until: now, last: '24h' }

describe('a step to an adjacent period', () => {
  test('keeps the length, and back at the end returns the relative period', () => {
    const before = shiftSpan(lastDay, 'earlier', now)
    expect(before).toEqual(absolute(now - 2 * day, now - day))
    expect(shiftSpan(before, 'later', now)).toEqual(lastDay)
    expect(shiftSpan(shiftSpan(before, 'earlier', now), 'later', now)).toEqual(before)
  })

  test('never goes past now', () => {
    expect(shiftSpan(lastDay, 'later', now)).toEqual(lastDay)
    const twoHours = absolute(now - 3 * hour, now - hour)
    expect(shiftSpan(twoHours, 'later', now)).toEqual(absolute(now - 2 * hour, now))
  })

  test('keeps the number of hours when the clock changes', () => {
    const changed = absolute(
      Date.parse('2026-10-25T00:00:00+02:00'),
      Date.parse('2026-10-26T00:00:00+01:00'),
    )
    expect(shiftSpan(changed, 'earlier', now).since).toBe(changed.since - 25 * hour)
  })
})

test('a widened period has the same middle, and ends no later than now', () => {
  expect(widenSpan(absolute(now - 3 * day, now - 2 * day), now)).toEqual(
    absolute(now - 3.5 * day, now - 1.5 * day),
  )
  expect(widenSpan(absolute(now - day, now), now)).toEqual(absolute(now - 1.5 * day, now))
})

test('a relative period stays relative in the URL, and an absolute one has both times', () => {
  expect(timeParameters(lastDay)).toEqual({ last: '24h', since: null, until: null })
  const parameters = timeParameters(absolute(now - hour, now))
  expect(parameters).toMatchObject({ last: null, until: '2026-11-27T14:30:00.000Z' })
  const query = new URLSearchParams({
    since: parameters.since ?? '',
    until: parameters.until ?? '',
  })
  expect(spanOf(query, now + day)).toEqual(absolute(now - hour, now))
})

test.each([
  ['', false],
  ['last=7d', false],
  ['since=2026-11-27T10:00:00Z&until=2026-11-27T11:00:00Z', false],
  ['since=2026-11-27T10:00:00Z&until=2026-11-27T11:00:00Z&last=7d', false],
  ['since=banana', true],
  ['since=2026-11-27T11:00:00Z&until=2026-11-27T10:00:00Z', true],
  ['last=banana', true],
  ['since=banana&last=7d', true],
])('hasInvalidTimes for "?%s" is %s', (query, expected) =>
  expect(hasInvalidTimes(new URLSearchParams(query))).toBe(expected),
)

describe('datetime-local fields', () => {
  test.each([
    ['UTC', '2026-11-27T14:30'],
    ['Asia/Kolkata', '2026-11-27T20:00'],
    ['America/St_Johns', '2026-11-27T11:00'],
    ['Pacific/Kiritimati', '2026-11-28T04:30'],
  ])('show the local time in %s', (zone, text) => expect(toFieldValue(now, zone)).toBe(text))

  test('show the local time when the clock changes', () => {
    const at = Date.parse('2026-10-25T00:30:00Z')
    const times = [at, at + hour, at + 2 * hour].map((time) => toFieldValue(time, 'Europe/Berlin'))
    expect(times).toEqual(['2026-10-25T02:30', '2026-10-25T02:30', '2026-10-25T03:30'])
  })
})
