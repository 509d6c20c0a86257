import { expect, it } from 'vitest'
import { createLru } from '../../infra/lru.ts'

it('has what was used last, and no more than it may', () => {
  const lru = createLru<string, number>(3)
  for (const [value, key] of ['a', 'b', 'c'].entries()) lru.set(key, value)
  expect(lru.get('a')).toBe(0)
  lru.set('d', 3)
  expect([...lru.keys()]).toEqual(['d', 'a', 'c'])
  lru.set('c', 4)
  lru.set('e', 5)
  expect([...lru.entries()]).toEqual([
    ['e', 5],
    ['c', 4],
    ['d', 3],
  ])
})

it('forgets by age, and tells what it drops', () => {
  let now = 1
  const dropped: string[] = []
  const dispose = (_: number, key: string) => void dropped.push(key)
  const lru = createLru<string, number>(2, {
    ttl: 10,
    perf: { now: () => now },
    ttlResolution: 0,
    dispose,
  })
  for (const [value, key] of ['a', 'b', 'c'].entries()) lru.set(key, value)
  expect(dropped).toEqual(['a'])
  now = 12
  expect(lru.get('c')).toBeUndefined()
})
