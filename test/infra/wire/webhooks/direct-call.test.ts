import { expect, test } from 'vitest'
import { nextDirectAttempt } from '../../../../infra/wire/webhooks/direct-call.ts'

const minute = 60_000

/** Returns when attempts start, in seconds after the event, and the indexes of those with `isLast`. */
function scheduleOf({
  tookMs,
  deadline,
  timeoutMs,
}: {
  tookMs: number
  deadline: number
  timeoutMs: number
}) {
  const starts: number[] = []
  const last: number[] = []
  for (let since = 0; ; ) {
    const next = nextDirectAttempt({ attempts: starts.length, since, deadline, timeoutMs })
    if (!next || starts.length > 1000) return { starts, last }
    if (next.isLast) last.push(starts.length)
    starts.push(next.at / 1000)
    since = next.at + tookMs
  }
}

test('waits 0, 1, 2, 4, 8, 15, 30 and then 60 seconds', () => {
  const { starts } = scheduleOf({ tookMs: 0, deadline: 15 * minute, timeoutMs: 10_000 })
  expect(starts.slice(0, 9)).toEqual([0, 1, 3, 7, 15, 30, 60, 120, 180])
})

test.each([
  ['at once', 0],
  ['after 4 seconds', 4000],
  ['never', 10_000],
])(
  'every attempt has its full timeout before the deadline if receivers respond %s',
  (_, tookMs) => {
    const deadline = 15 * minute
    const { starts, last } = scheduleOf({ tookMs, deadline, timeoutMs: 10_000 })
    expect(Math.max(...starts) * 1000 + 10_000).toBeLessThanOrEqual(deadline)
    expect(starts.length).toBeGreaterThan(14)
    // An attempt with `isLast` may end early enough for another one.
    expect(last).not.toEqual([])
    expect(last[0]).toBeGreaterThanOrEqual(starts.length - 2)
    if (tookMs === 10_000) expect(last).toEqual([starts.length - 1])
  },
)

test('returns undefined if there is no time for a full attempt', () => {
  const schedule = { attempts: 0, since: 1000, timeoutMs: 10_000 }
  expect(nextDirectAttempt({ ...schedule, deadline: 10_999 })).toBeUndefined()
  expect(nextDirectAttempt({ ...schedule, deadline: 11_000 })).toEqual({ at: 1000, isLast: true })
})
