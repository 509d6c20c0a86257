import { expect, test } from 'vitest'
import { wholeAddressOf } from '../../../services/collect/requests.ts'

test.each([
  ['::ffff:203.0.113.9', '203.0.113.9'],
  ['::FFFF:203.0.113.9', '203.0.113.9'],
  ['203.0.113.9', '203.0.113.9'],
  ['2001:db8::9', '2001:db8::9'],
  ['::1', '::1'],
  ['::ffff:nonsense', '::ffff:nonsense'],
])('the address %s is recorded as %s', (ip, recorded) => {
  expect(wholeAddressOf({ ip })).toBe(recorded)
})
