import { expect, it } from 'vitest'
import { cachedFor } from '../../../infra/timing.ts'

it('concurrent calls share one check, whose success is cached and whose failure is not', async () => {
  let [now, calls] = [0, 0]
  const attempts: PromiseWithResolvers<void>[] = []
  const check = cachedFor(
    1000,
    () => {
      calls++
      const attempt = Promise.withResolvers<void>()
      attempts.push(attempt)
      return attempt.promise
    },
    () => now + 1,
  )
  const pending = [check(), check()]
  expect(calls).toBe(1)
  attempts[0]?.resolve()
  await Promise.all(pending)
  now = 999
  await check()
  expect(calls).toBe(1)
  now = 1000
  const again = check()
  expect(calls).toBe(2)
  attempts[1]?.reject(new Error('full'))
  await expect(again).rejects.toThrow('full')
  // A failure is not cached.
  const recovered = check()
  expect(calls).toBe(3)
  attempts[2]?.resolve()
  await recovered
})
