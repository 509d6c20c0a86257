import { expect, test } from 'vitest'
import { nextDirectAttempt } from '../../../../infra/wire/webhooks/direct-call.ts'

const minute = 60_000

/** When attempts begin, in seconds after the event, if each takes so long; and which of them says it is the last. */
function attempts({
  tookMs,
  deadline,
  timeoutMs,
}: {
  tookMs: number
  deadline: number
  timeoutMs: number
}) {
  const begun: number[] = []
  const last: number[] = []
  for (let since = 0; ; ) {
    const next = nextDirectAttempt({ attempts: begun.length, since, deadline, timeoutMs })
    if (!next || begun.length > 1000) return { begun, last }
    if (next.isLast) last.push(begun.length)
    begun.push(next.at / 1000)
    since = next.at + tookMs
  }
}

test('waits 0, 1, 2, 4, 8, 15, 30 and then 60 seconds', () => {
  const { begun } = attempts({ tookMs: 0, deadline: 15 * minute, timeoutMs: 10_000 })
  expect(begun.slice(0, 9)).toEqual([0, 1, 3, 7, 15, 30, 60, 120, 180])
})

test.each([
  ['at once', 0],
  ['after a while', 4000],
  ['never', 10_000],
])(
  'every attempt has its whole time-out before the deadline where receivers answer %s',
  (_, tookMs) => {
    const deadline = 15 * minute
    const { begun, last } = attempts({ tookMs, deadline, timeoutMs: 10_000 })
    expect(Math.max(...begun) * 1000 + 10_000).toBeLessThanOrEqual(deadline)
    expect(begun.length).toBeGreaterThan(14)
    // It may turn out that there was time for more: one that timed out would have been the last all the same.
    expect(last).not.toEqual([])
    expect(last[0]).toBeGreaterThanOrEqual(begun.length - 2)
    if (tookMs === 10_000) expect(last).toEqual([begun.length - 1])
  },
)

test('is over when there is no time for a whole attempt', () => {
  const schedule = { attempts: 0, since: 1000, timeoutMs: 10_000 }
  expect(nextDirectAttempt({ ...schedule, deadline: 10_999 })).toBeUndefined()
  expect(nextDirectAttempt({ ...schedule, deadline: 11_000 })).toEqual({ at: 1000, isLast: true })
})
