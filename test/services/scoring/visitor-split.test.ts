import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { KnownVisitor } from '../../../services/scoring/visitors/match.ts'
import { type LinkedSession, mayBeTwo, splitOf } from '../../../services/scoring/visitors/split.ts'

const session = (lineage: string, linked_at: number): LinkedSession => ({
  session_id: `${lineage}${linked_at}`,
  lineage,
  linked_at,
  merged_at: null,
})
const visitor = (lineage: string | null, is_tentative = false) =>
  ({ id: 'vid_a', lineage, is_tentative }) as KnownVisitor

const chain = [session('a', 1), session('a', 2), session('b', 3), session('c', 4), session('c', 5)]

it.each([
  ['the first, the rest is somebody else', ['a'], ['b3', 'c4', 'c5']],
  ['the one in the middle, what came later is', ['b'], ['c4', 'c5']],
  ['the newest, nobody is', ['c'], undefined],
  ['the first and the newest, only what neither shows is not: nobody', ['a', 'c'], undefined],
  ['what no session had, nobody is', ['x'], undefined],
])('given three lineages, when a client shows %s', (_, presented, moved) => {
  expect(splitOf(visitor('c'), presented, chain)?.sessionIds).toEqual(moved)
})

it('given one that came while another was there, when it shows storage of its own, it is another', () => {
  expect(splitOf(visitor('c', true), ['c'], chain)).toEqual({
    cause: 'second_profile',
    sessionIds: ['c4', 'c5'],
  })
  expect(splitOf(visitor('a', true), ['a'], chain.slice(0, 2))).toBeUndefined()
})

it('links are looked at only where there may be two', () => {
  expect(mayBeTwo(visitor('c'), ['c'])).toBe(false)
  expect(mayBeTwo(visitor('c', true), ['c'])).toBe(true)
  expect(mayBeTwo(visitor('c'), ['a'])).toBe(true)
  expect(mayBeTwo(visitor(null), ['a'])).toBe(false)
})

it('whoever shows an id stays with all that showed it, and nobody is in both', () => {
  const sessions = fc.uniqueArray(
    fc.record({ lineage: fc.constantFrom('a', 'b', 'c', 'd'), linked_at: fc.nat(50) }),
    { selector: ({ lineage, linked_at }) => `${lineage}${linked_at}` },
  )
  fc.assert(
    fc.property(sessions, fc.constantFrom('a', 'b', 'c', 'd'), fc.boolean(), (some, shown, isTentative) => {
      const all = some.map(({ lineage, linked_at }) => session(lineage, linked_at))
      const moved = new Set(splitOf(visitor('d', isTentative), [shown], all)?.sessionIds)
      const theirs = all.filter(({ lineage }) => lineage === shown).map((one) => moved.has(one.session_id))
      expect(new Set(theirs).size).toBeLessThanOrEqual(1)
      expect(moved.size).toBeLessThan(Math.max(1, all.length))
    }),
  )
})
