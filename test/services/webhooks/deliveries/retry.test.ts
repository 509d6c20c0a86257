import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../../../infra/config.ts'
import type { PostOutcome } from '../../../../infra/safe-http/client.ts'
import {
  attemptResult,
  type EndedAttempt,
  retryAfterSeconds,
} from '../../../../services/webhooks/deliveries/decide.ts'

const now = Date.UTC(2026, 10, 21, 12)
const schedule = readConfig({}).WEBHOOK_RETRY_SECONDS
const hour = 3600

const answer = (status: number, retryAfter?: string): PostOutcome => ({
  kind: 'response',
  status,
  retryAfter,
  body: Buffer.alloc(0),
  durationMs: 1,
})
const failure = (reason: 'timeout' | 'connect' | 'reset'): PostOutcome => ({
  kind: 'failure',
  reason,
  message: 'No.',
  durationMs: 1,
})

/** Seconds until the next attempt; with a random number in the middle nothing is added or taken. */
function wait(outcome: PostOutcome, some: Partial<EndedAttempt> = {}): number | null {
  const made = { outcome, attemptsInRound: 1, now, waitsSeconds: schedule, random: 0.5, ...some }
  const { nextAttemptAt } = attemptResult(made)
  return nextAttemptAt === null ? null : (nextAttemptAt - now) / 1000
}

describe('the schedule', () => {
  test('is nine waits after ten attempts, then the delivery has failed', () => {
    const waits = Array.from({ length: 10 }, (_, i) =>
      wait(answer(500), { attemptsInRound: i + 1 }),
    )
    expect(waits).toEqual([
      5,
      300,
      1800,
      2 * hour,
      5 * hour,
      10 * hour,
      14 * hour,
      20 * hour,
      24 * hour,
      null,
    ])
    expect(attemptResult({ ...made(answer(500)), attemptsInRound: 10 })).toEqual({
      result: 'failed',
      nextAttemptAt: null,
    })
  })

  test.each([
    [200, 'succeeded'],
    [204, 'succeeded'],
    [299, 'succeeded'],
    [199, 'retrying'],
    [301, 'retrying'],
    [304, 'retrying'],
    [400, 'retrying'],
    [404, 'retrying'],
    [410, 'failed'],
    [429, 'retrying'],
    [503, 'retrying'],
  ])('status %i means %s', (status, result) => {
    expect(attemptResult(made(answer(status))).result).toBe(result)
  })

  test.each(['timeout', 'connect', 'reset'] as const)(
    'no answer (%s) means another attempt',
    (reason) => {
      expect(attemptResult(made(failure(reason))).result).toBe('retrying')
    },
  )
})

describe('a rest', () => {
  test('of a minute follows a 429 and a time-out, where the schedule has less', () => {
    expect(wait(answer(429))).toBe(60)
    expect(wait(failure('timeout'))).toBe(60)
    expect(wait(failure('timeout'), { random: 0 })).toBe(60)
    expect(wait(failure('connect'))).toBe(5)
    expect(wait(answer(429), { attemptsInRound: 2 })).toBe(300)
  })

  test('is no longer than the longest wait of the schedule', () => {
    expect(wait(answer(429), { waitsSeconds: [0, 1, 2] })).toBe(2)
    expect(wait(failure('timeout'), { waitsSeconds: [0, 0] })).toBe(0)
  })
})

describe('Retry-After', () => {
  test.each([
    ['2', 5],
    ['7', 7],
    ['10', 10],
    ['11', 10],
    ['86400', 10],
    ['Sat, 21 Nov 2026 12:00:08 GMT', 8],
    ['Sat, 21 Nov 2026 11:00:00 GMT', 5],
    ['Sat, 21 Nov 2099 12:00:00 GMT', 10],
    ['soon', 5],
    ['-3', 5],
    ['', 5],
  ])('%j makes a wait of 5 seconds %i', (header, seconds) => {
    expect(wait(answer(503, header))).toBe(seconds)
  })

  test('may double the rest after a 429', () => {
    expect(wait(answer(429, '90'))).toBe(90)
    expect(wait(answer(429, '9000'))).toBe(120)
  })

  test('is read as seconds or as an HTTP date and as nothing else', () => {
    expect(retryAfterSeconds('120', now)).toBe(120)
    expect(retryAfterSeconds(' 0 ', now)).toBe(0)
    for (const date of [
      'Sat, 21 Nov 2026 12:02:00 GMT',
      'Saturday, 21-Nov-26 12:02:00 GMT',
      'Sat Nov 21 12:02:00 2026',
    ])
      expect(retryAfterSeconds(date, now)).toBe(120)
    expect(retryAfterSeconds('Sun Nov  1 12:00:00 2026', now)).toBe(0)
    for (const text of [
      '1.5',
      '1e3',
      '0x10',
      'tomorrow',
      '2026-11-21T12:02:00Z',
      'Sat, 99 Xyz 2026 12:02:00 GMT',
      'Saturday, 21-Nov-2026 12:02:00 GMT',
      'Saturday, 21-Nov-26 12:02:00',
      'Sat Nov 21 12:02:00 2026 CET',
      'Sat Nov 1 12:02:00 2026',
    ])
      expect(retryAfterSeconds(text, now)).toBeUndefined()
    expect(retryAfterSeconds(undefined, now)).toBeUndefined()
  })
})

test('whatever an attempt met, the next is within 0.8 and 2 times its wait or the rest, or there is none', () => {
  const outcome = fc.oneof(
    fc
      .record({
        status: fc.integer({ min: 100, max: 599 }),
        after: fc.option(fc.string(), { nil: undefined }),
      })
      .map(({ status, after }) => answer(status, after)),
    fc.nat(1e9).map((seconds) => answer(429, String(seconds))),
    fc.constantFrom('timeout', 'connect', 'reset').map(failure),
  )
  const waits = fc.array(fc.nat(100_000), { minLength: 1, maxLength: 12 })
  const random = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })
  fc.assert(
    fc.property(outcome, waits, fc.nat(14), random, (met, waitsSeconds, before, drawn) => {
      const attempt = { ...made(met), waitsSeconds, attemptsInRound: before + 1, random: drawn }
      const { result, nextAttemptAt } = attemptResult(attempt)
      expect(nextAttemptAt === null).toBe(result !== 'retrying')
      if (result === 'retrying') {
        const scheduled = waitsSeconds[before + 1] ?? Number.NaN
        const rest = Math.min(60, Math.max(...waitsSeconds))
        const seconds = ((nextAttemptAt ?? Number.NaN) - now) / 1000
        expect(seconds).toBeGreaterThanOrEqual(Math.floor(scheduled * 800) / 1000)
        expect(seconds).toBeLessThanOrEqual(2 * Math.max(scheduled, rest))
      }
      if (before + 1 >= waitsSeconds.length) expect(result).not.toBe('retrying')
    }),
  )
})

function made(outcome: PostOutcome): EndedAttempt {
  return { outcome, attemptsInRound: 1, now, waitsSeconds: schedule, random: 0.5 }
}
