import { describe, expect, it } from 'vitest'
import { isCanonicalPublicAddress, networkPrefix, plainAddress } from '../../../infra/ip/network.ts'

describe('addresses', () => {
  it.each([
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['::FFFF:cb00:7109', '203.0.113.9'],
    ['203.0.113.9', '203.0.113.9'],
    ['2001:db8::1', '2001:db8::1'],
    ['', ''],
    ['unix', 'unix'],
  ])('plainAddress of %j is %j', (ip, plain) => {
    expect(plainAddress(ip)).toBe(plain)
  })

  it.each([
    ['203.0.113.9', '203.0.113'],
    ['::ffff:203.0.113.9', '203.0.113'],
    ['2001:db8::1', '20010db80000'],
    ['2001:db8:0:7::1', '20010db80000'],
    ['2001:db8:1::', '20010db80001'],
    ['unix', null],
    ['', null],
  ])('networkPrefix of %j is %j', (ip, prefix) => {
    expect(networkPrefix(ip)).toBe(prefix)
  })

  // test/infra/safe-http/addresses.test.ts covers all special ranges.
  it.each(['8.8.8.8', '2001:4860:4860::8888', '2A00:1450::1', '2620:0:0:0:0:0:0:1'])(
    '%s is a canonical public address',
    (ip) => expect(isCanonicalPublicAddress(ip)).toBe(true),
  )

  it.each(['', ' 8.8.8.8', '8.8.8', '0x8.8.8.8', '8.8.8.256', 'example.com', '10.0.0.1', '[::8]'])(
    '%j is not a canonical public address',
    (ip) => expect(isCanonicalPublicAddress(ip)).toBe(false),
  )
})
