import { setImmediate as settled } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createConcurrencyLimit } from '../../../infra/flow/limit.ts'

/** Work that runs until `end` is called. `started` has the ids in the order in which they started. */
function createWork(limit = createConcurrencyLimit({ max: 2 })) {
  const ends = new Map<string, () => void>()
  const started: string[] = []
  return {
    started,
    run(id: string, names: string[]) {
      return limit.run(names, () => {
        started.push(id)
        return new Promise<void>((resolve) => ends.set(id, resolve))
      })
    },
    async end(id: string) {
      ends.get(id)?.()
      await settled()
    },
  }
}

test('tryEnter respects the limits per name and in total', () => {
  const limit = createConcurrencyLimit({ max: 5, maxPerName: 2 })
  const releases = new Map<string, (() => void)[]>()
  const enter = (names: string) =>
    [...names].map((name) => {
      const leave = limit.tryEnter([name])
      if (leave) releases.set(name, [...(releases.get(name) ?? []), leave])
      return leave !== undefined
    })
  const leave = (names: string) => {
    for (const name of names) releases.get(name)?.pop()?.()
  }
  expect(enter('aaab')).toEqual([true, true, false, true])
  expect(enter('bcd')).toEqual([true, true, false])
  leave('a')
  expect(enter('da')).toEqual([true, false])
  leave('abbcd')
  expect(enter('eeffgg')).toEqual([true, true, true, true, true, false])
})

test('work starts in order, except while one of its names is in use', async () => {
  const { started, run, end } = createWork()
  void run('first', ['a'])
  void run('second', ['a', 'b'])
  void run('third', ['c'])
  void run('fourth', [])
  await settled()
  expect(started).toEqual(['first', 'third'])
  await end('third')
  expect(started).toEqual(['first', 'third', 'fourth'])
  await end('first')
  expect(started).toEqual(['first', 'third', 'fourth', 'second'])
})

test('failed work releases its slot', async () => {
  const limit = createConcurrencyLimit({ max: 1 })
  await expect(limit.run(['a'], () => Promise.reject(new Error('as it is')))).rejects.toThrow(
    'as it is',
  )
  expect(await limit.run(['a'], async () => 'done')).toBe('done')
})

test('work that waits too long rejects with 503 and never starts', async () => {
  const { started, run, end } = createWork(createConcurrencyLimit({ max: 1, timeoutMs: 20 }))
  void run('first', [])
  await expect(run('second', [])).rejects.toMatchObject({ code: 'service.unavailable' })
  await end('first')
  expect(started).toEqual(['first'])
})
