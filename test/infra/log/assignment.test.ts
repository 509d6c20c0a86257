import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fairShare } from '../../../infra/log/postgres/assignment.ts'

test('every partition falls to exactly one member, and no member gets two more than another', () => {
  const members = fc.uniqueArray(fc.nat(), { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 100 }), members, (partitions, some) => {
      const shares = some.map((me) => fairShare(partitions, some, me))
      const all = shares.flat().sort((a, b) => a - b)
      expect(all).toEqual(Array.from({ length: partitions }, (_, i) => i))
      const sizes = shares.map((share) => share.length)
      expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1)
    }),
  )
})

test('who is not among the members gets nothing', () => {
  expect(fairShare(4, [1, 2], 3)).toEqual([])
})
