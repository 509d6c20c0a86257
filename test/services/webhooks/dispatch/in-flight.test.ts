import { expect, test } from 'vitest'
import { createInFlight } from '../../../../services/webhooks/dispatch/in-flight.ts'

test('the end of a request is reported until it was, and only of what is in flight', () => {
  const inFlight = createInFlight()
  for (const id of ['a', 'b', 'c']) inFlight.add(id)
  for (const id of ['a', 'b']) expect(inFlight.endRequest(id)).toBe(true)
  expect(inFlight.unreportedEnds()).toEqual(['a', 'b'])
  expect(inFlight.unreportedEnds()).toEqual(['a', 'b'])
  inFlight.reported(['a'])
  expect(inFlight.unreportedEnds()).toEqual(['b'])
  inFlight.remove('b')
  expect(inFlight.unreportedEnds()).toEqual([])
  expect(inFlight.size()).toBe(2)
})
