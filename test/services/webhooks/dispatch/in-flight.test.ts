import { expect, test } from 'vitest'
import { createInFlight } from '../../../../services/webhooks/dispatch/in-flight.ts'

test('that a request has ended is told until somebody was told, and only of what is held', () => {
  const held = createInFlight()
  for (const id of ['a', 'b', 'c']) held.add(id)
  for (const id of ['a', 'b']) expect(held.endRequest(id)).toBe(true)
  expect(held.unreportedEnds()).toEqual(['a', 'b'])
  expect(held.unreportedEnds()).toEqual(['a', 'b'])
  held.reported(['a'])
  expect(held.unreportedEnds()).toEqual(['b'])
  held.remove('b')
  expect(held.unreportedEnds()).toEqual([])
  expect(held.size()).toBe(2)
})
