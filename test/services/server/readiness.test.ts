import { expect, it } from 'vitest'
import { cachedFor } from '../../../infra/timing.ts'

it('a check that is made seldom is made once for all who ask at a time, and again only when its success has aged', async () => {
  let [now, made] = [0, 0]
  const attempts: PromiseWithResolvers<void>[] = []
  const check = cachedFor(
    1000,
    () => {
      made++
      const attempt = Promise.withResolvers<void>()
      attempts.push(attempt)
      return attempt.promise
    },
    () => now + 1,
  )
  const asked = [check(), check()]
  expect(made).toBe(1)
  attempts[0]?.resolve()
  await Promise.all(asked)
  now = 999
  await check()
  expect(made).toBe(1)
  now = 1000
  const again = check()
  expect(made).toBe(2)
  attempts[1]?.reject(new Error('full'))
  await expect(again).rejects.toThrow('full')
  // A failure is asked again at once.
  const recovered = check()
  expect(made).toBe(3)
  attempts[2]?.resolve()
  await recovered
})
