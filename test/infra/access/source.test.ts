import { expect, test } from 'vitest'
import { sourceOf } from '../../../infra/access/source.ts'

test.each([
  ['203.0.113.9', '203.0.113.9'],
  ['::ffff:203.0.113.9', '203.0.113.9'],
  ['::FFFF:cb00:7109', '203.0.113.9'],
  ['2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff'],
  ['2001:0db8:0001:0002:0:0:0:1', '2001:db8:1:2::9'],
  ['fe80::1%eth0', 'fe80::2'],
  ['not an address', ''],
])('%s and %s are one source', (a, b) => expect(sourceOf(a)).toBe(sourceOf(b)))

test.each([
  ['203.0.113.9', '203.0.113.10'],
  ['2001:db8:1:2::1', '2001:db8:1:3::1'],
  ['::1', '127.0.0.1'],
  ['203.0.113.9', 'not an address'],
])('%s and %s are two sources', (a, b) => expect(sourceOf(a)).not.toBe(sourceOf(b)))
