import { expect, test } from 'vitest'
import { createHeld } from '../../../../services/webhooks/dispatch/held.ts'

test('that a request has ended is told until somebody was told, and only of what is held', () => {
  const held = createHeld()
  for (const id of ['a', 'b', 'c']) held.add(id)
  for (const id of ['a', 'b']) expect(held.endSending(id)).toBe(true)
  expect(held.ended()).toEqual(['a', 'b'])
  expect(held.ended()).toEqual(['a', 'b'])
  held.told(['a'])
  expect(held.ended()).toEqual(['b'])
  held.remove('b')
  expect(held.ended()).toEqual([])
  expect(held.size()).toBe(2)
})
