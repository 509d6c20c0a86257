import { setImmediate as settled } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createConcurrencyLimit } from '../../../infra/flow/limit.ts'

/** Work that goes on until it is ended, and the names of what runs, in the order in which it began. */
function createWork(limit = createConcurrencyLimit({ max: 2 })) {
  const ends = new Map<string, () => void>()
  const begun: string[] = []
  return {
    begun,
    run(id: string, names: string[]) {
      return limit.run(names, () => {
        begun.push(id)
        return new Promise<void>((resolve) => ends.set(id, resolve))
      })
    },
    async end(id: string) {
      ends.get(id)?.()
      await settled()
    },
  }
}

test('no name goes beyond its limit, and all together not beyond theirs', () => {
  const limit = createConcurrencyLimit({ max: 5, maxPerName: 2 })
  const places = new Map<string, (() => void)[]>()
  const enter = (names: string) =>
    [...names].map((name) => {
      const leave = limit.tryEnter([name])
      if (leave) places.set(name, [...(places.get(name) ?? []), leave])
      return leave !== undefined
    })
  const leave = (names: string) => {
    for (const name of names) places.get(name)?.pop()?.()
  }
  expect(enter('aaab')).toEqual([true, true, false, true])
  expect(enter('bcd')).toEqual([true, true, false])
  leave('a')
  expect(enter('da')).toEqual([true, false])
  leave('abbcd')
  expect(enter('eeffgg')).toEqual([true, true, true, true, true, false])
})

test('work begins in the order in which it came, but for work whose name is taken', async () => {
  const { begun, run, end } = createWork()
  void run('first', ['a'])
  void run('second', ['a', 'b'])
  void run('third', ['c'])
  void run('fourth', [])
  await settled()
  expect(begun).toEqual(['first', 'third'])
  await end('third')
  expect(begun).toEqual(['first', 'third', 'fourth'])
  await end('first')
  expect(begun).toEqual(['first', 'third', 'fourth', 'second'])
})

test('work that fails gives its place back', async () => {
  const limit = createConcurrencyLimit({ max: 1 })
  await expect(limit.run(['a'], () => Promise.reject(new Error('as it is')))).rejects.toThrow(
    'as it is',
  )
  expect(await limit.run(['a'], async () => 'done')).toBe('done')
})

test('work that waits for too long is refused with 503 and never begins', async () => {
  const { begun, run, end } = createWork(createConcurrencyLimit({ max: 1, timeoutMs: 20 }))
  void run('first', [])
  await expect(run('second', [])).rejects.toMatchObject({ code: 'service.unavailable' })
  await end('first')
  expect(begun).toEqual(['first'])
})
