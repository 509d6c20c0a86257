import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { KnownVisitor } from '../../../services/scoring/visitors/match.ts'
import {
  type LinkedSession,
  needsSplitCheck,
  sessionsToSplit,
} from '../../../services/scoring/visitors/split.ts'

const session = (storage_key: string, linked_at: number): LinkedSession => ({
  session_id: `${storage_key}${linked_at}`,
  storage_key,
  linked_at,
  merged_at: null,
})
const visitor = (storage_key: string | null): KnownVisitor => ({
  id: 'vid_a',
  storage_key,
  first_seen_at: 1,
  last_seen_at: 5,
  sessions: 5,
  profile: null,
  apart_from: null,
})

const chain = [session('a', 1), session('a', 2), session('b', 3), session('c', 4), session('c', 5)]

it.each([
  ['the first, the rest is somebody else', ['a'], ['b3', 'c4', 'c5']],
  ['the one in the middle, what came later is', ['b'], ['c4', 'c5']],
  ['the newest, nobody is', ['c'], []],
  ['the first and the newest, only what neither shows is not: nobody', ['a', 'c'], []],
  ['what no session had, nobody is', ['x'], []],
])('given three lineages, when a client shows %s', (_, presented, moved) => {
  expect(sessionsToSplit(visitor('c'), presented, chain)).toEqual(moved)
})

it('links are looked at only where there may be two', () => {
  expect(needsSplitCheck(visitor('c'), ['c'])).toBe(false)
  expect(needsSplitCheck(visitor('c'), ['a'])).toBe(true)
  expect(needsSplitCheck(visitor(null), ['a'])).toBe(false)
})

it('whoever shows an id stays with all that showed it, and nobody is in both', () => {
  const sessions = fc.uniqueArray(
    fc.record({ storage_key: fc.constantFrom('a', 'b', 'c', 'd'), linked_at: fc.nat(50) }),
    { selector: ({ storage_key, linked_at }) => `${storage_key}${linked_at}` },
  )
  fc.assert(
    fc.property(sessions, fc.constantFrom('a', 'b', 'c', 'd'), (some, shown) => {
      const all = some.map(({ storage_key, linked_at }) => session(storage_key, linked_at))
      const moved = new Set(sessionsToSplit(visitor('d'), [shown], all))
      const theirs = all
        .filter(({ storage_key }) => storage_key === shown)
        .map((one) => moved.has(one.session_id))
      expect(new Set(theirs).size).toBeLessThanOrEqual(1)
      expect(moved.size).toBeLessThan(Math.max(1, all.length))
    }),
  )
})
