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
  ['the first, moves the others', ['a'], ['b3', 'c4', 'c5']],
  ['the second, moves the third', ['b'], ['c4', 'c5']],
  ['the newest, moves nothing', ['c'], []],
  ['the first and the newest, moves nothing', ['a', 'c'], []],
  ['an unknown one, moves nothing', ['x'], []],
])('with three storages, a client that presents %s', (_, presented, moved) => {
  expect(sessionsToSplit(visitor('c'), presented, chain)).toEqual(moved)
})

it('reads sessions only if the visitor might be split', () => {
  expect(needsSplitCheck(visitor('c'), ['c'])).toBe(false)
  expect(needsSplitCheck(visitor('c'), ['a'])).toBe(true)
  expect(needsSplitCheck(visitor(null), ['a'])).toBe(false)
})

it('keeps all sessions of a storage together, and never moves all sessions', () => {
  const sessions = fc.uniqueArray(
    fc.record({ storage_key: fc.constantFrom('a', 'b', 'c', 'd'), linked_at: fc.nat(50) }),
    { selector: ({ storage_key, linked_at }) => `${storage_key}${linked_at}` },
  )
  fc.assert(
    fc.property(sessions, fc.constantFrom('a', 'b', 'c', 'd'), (links, shown) => {
      const all = links.map(({ storage_key, linked_at }) => session(storage_key, linked_at))
      const moved = new Set(sessionsToSplit(visitor('d'), [shown], all))
      const theirs = all
        .filter(({ storage_key }) => storage_key === shown)
        .map((one) => moved.has(one.session_id))
      expect(new Set(theirs).size).toBeLessThanOrEqual(1)
      expect(moved.size).toBeLessThan(Math.max(1, all.length))
    }),
  )
})
