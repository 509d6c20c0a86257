import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../../../infra/config.ts'
import type { RequestOutcome } from '../../../../infra/safe-http/client.ts'
import {
  attemptResult,
  type RetryInput,
  retryAfterSeconds,
} from '../../../../services/webhooks/deliveries/decide.ts'

const now = Date.UTC(2026, 10, 21, 12)
const hour = 3600

const answer = (status: number, retryAfter?: string): RequestOutcome => ({
  kind: 'response',
  status,
  retryAfter,
  body: Buffer.alloc(0),
  durationMs: 1,
})
const failure = (reason: 'timeout' | 'connect' | 'reset'): RequestOutcome => ({
  kind: 'failure',
  reason,
  message: 'No.',
  durationMs: 1,
})

/** First attempt by default settings. With the random number 0.5, the jitter is 0. */
const ended = (outcome: RequestOutcome, some: Partial<RetryInput> = {}): RetryInput => ({
  outcome,
  attemptsInRound: 1,
  now,
  waitsSeconds: readConfig({}).WEBHOOK_RETRY_SECONDS,
  random: 0.5,
  ...some,
})

/** Returns the seconds until the next attempt. */
function wait(outcome: RequestOutcome, some?: Partial<RetryInput>): number | null {
  const { nextAttemptAt } = attemptResult(ended(outcome, some))
  return nextAttemptAt === null ? null : (nextAttemptAt - now) / 1000
}

describe('the schedule', () => {
  test('makes ten attempts with nine waits, then the delivery fails', () => {
    const waits = Array.from({ length: 10 }, (_, i) =>
      wait(answer(500), { attemptsInRound: i + 1 }),
    )
    const hours = [2, 5, 10, 14, 20, 24].map((count) => count * hour)
    expect(waits).toEqual([5, 300, 1800, ...hours, null])
    const last = attemptResult(ended(answer(500), { attemptsInRound: 10 }))
    expect(last).toEqual({ result: 'failed', nextAttemptAt: null })
  })

  test.each([
    [200, 'succeeded'],
    [299, 'succeeded'],
    [199, 'retrying'],
    [301, 'retrying'],
    [404, 'retrying'],
    [410, 'failed'],
    [429, 'retrying'],
    [503, 'retrying'],
  ])('status %i means %s', (status, result) => {
    expect(attemptResult(ended(answer(status))).result).toBe(result)
  })

  test.each(['timeout', 'connect', 'reset'] as const)('no response (%s) is retried', (reason) => {
    expect(attemptResult(ended(failure(reason))).result).toBe('retrying')
  })
})

test.each<[string, number, RequestOutcome, Partial<RetryInput>]>([
  ['follows a 429', 60, answer(429), {}],
  ['follows a timeout', 60, failure('timeout'), {}],
  ['is not shortened by the jitter', 60, failure('timeout'), { random: 0 }],
  ['does not follow other failures', 5, failure('connect'), {}],
  ['does not change a longer scheduled wait', 300, answer(429), { attemptsInRound: 2 }],
  ['never exceeds the longest scheduled wait', 2, answer(429), { waitsSeconds: [0, 1, 2] }],
  ['is 0 if the schedule has no waits', 0, failure('timeout'), { waitsSeconds: [0, 0] }],
  ['is extended by Retry-After', 90, answer(429, '90'), {}],
  ['is at most doubled', 120, answer(429, '9000'), {}],
])('a minimum wait of a minute %s: %d s', (_, seconds, outcome, some) => {
  expect(wait(outcome, some)).toBe(seconds)
})

test.each([
  ['2', 5],
  ['7', 7],
  ['10', 10],
  ['11', 10],
  ['Sat, 21 Nov 2026 12:00:08 GMT', 8],
  ['Sat, 21 Nov 2026 11:00:00 GMT', 5],
  ['Sat, 21 Nov 2099 12:00:00 GMT', 10],
  ['soon', 5],
])('Retry-After %j turns a wait of 5 seconds into %i', (header, seconds) => {
  expect(wait(answer(503, header))).toBe(seconds)
})

test.each([
  ['120', 120],
  [' 0 ', 0],
  ['Sat, 21 Nov 2026 12:02:00 GMT', 120],
  ['Saturday, 21-Nov-26 12:02:00 GMT', 120],
  ['Sat Nov 21 12:02:00 2026', 120],
  ['Sun Nov  1 12:00:00 2026', 0],
  ['1.5', undefined],
  ['-3', undefined],
  ['1e3', undefined],
  ['0x10', undefined],
  ['', undefined],
  ['2026-11-21T12:02:00Z', undefined],
  ['Sat, 99 Xyz 2026 12:02:00 GMT', undefined],
  ['Saturday, 21-Nov-2026 12:02:00 GMT', undefined],
  ['Saturday, 21-Nov-26 12:02:00', undefined],
  ['Sat Nov 21 12:02:00 2026 CET', undefined],
  ['Sat Nov 1 12:02:00 2026', undefined],
  [undefined, undefined],
])('Retry-After of %j, as seconds or an HTTP date, is %s', (header, seconds) => {
  expect(retryAfterSeconds(header, now)).toBe(seconds)
})

test('the next attempt is always 0.8 to 2 times the wait or the overload minimum away, or there is none', () => {
  const header = fc.option(fc.oneof(fc.string(), fc.nat(1e9).map(String)), { nil: undefined })
  const outcome = fc.oneof(
    fc.tuple(fc.integer({ min: 100, max: 599 }), header).map((some) => answer(...some)),
    header.map((after) => answer(429, after)),
    fc.constantFrom('timeout', 'connect', 'reset').map(failure),
  )
  const waits = fc.array(fc.nat(100_000), { minLength: 1, maxLength: 12 })
  const random = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })
  const property = fc.property(
    outcome,
    waits,
    fc.nat(14),
    random,
    (met, waitsSeconds, before, r) => {
      const some = { waitsSeconds, attemptsInRound: before + 1, random: r }
      const { result, nextAttemptAt } = attemptResult(ended(met, some))
      expect(nextAttemptAt === null).toBe(result !== 'retrying')
      if (before + 1 >= waitsSeconds.length) expect(result).not.toBe('retrying')
      if (nextAttemptAt === null) return
      const scheduled = waitsSeconds[before + 1] ?? Number.NaN
      const rest = Math.min(60, Math.max(...waitsSeconds))
      const seconds = (nextAttemptAt - now) / 1000
      expect(seconds).toBeGreaterThanOrEqual(Math.floor(scheduled * 800) / 1000)
      expect(seconds).toBeLessThanOrEqual(2 * Math.max(scheduled, rest))
    },
  )
  fc.assert(property)
})
