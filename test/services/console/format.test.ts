import { expect, test } from 'vitest'
import { pluralize } from '../../../services/console/pages/shared/format.ts'

test.each([
  ['session', 0, '0 sessions'],
  ['session', 1, '1 session'],
  ['day', 2, '2 days'],
  ['delivery', 1, '1 delivery'],
  ['delivery', 8412, '8\u2009412 deliveries'],
])('pluralizes %s, %d as %s', (thing, count, text) => {
  expect(pluralize(thing, count)).toBe(text)
})
