import { describe, expect, it } from 'vitest'
import { isPublicAddressInFull, networkPrefix, plainAddress } from '../../../infra/ip/network.ts'

describe('addresses', () => {
  it.each([
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['::FFFF:cb00:7109', '203.0.113.9'],
    ['203.0.113.9', '203.0.113.9'],
    ['2001:db8::1', '2001:db8::1'],
    ['', ''],
    ['unix', 'unix'],
  ])('%j is written as %j', (ip, plain) => {
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
  ])('%j is in the network %j', (ip, prefix) => {
    expect(networkPrefix(ip)).toBe(prefix)
  })

  // Each range that is special: test/infra/safe-http/addresses.test.ts
  it.each(['8.8.8.8', '2001:4860:4860::8888', '2A00:1450::1', '2620:0:0:0:0:0:0:1'])(
    '%s is a public address in full',
    (ip) => expect(isPublicAddressInFull(ip)).toBe(true),
  )

  it.each(['', ' 8.8.8.8', '8.8.8', '0x8.8.8.8', '8.8.8.256', 'example.com', '10.0.0.1', '[::8]'])(
    '%j is not',
    (ip) => expect(isPublicAddressInFull(ip)).toBe(false),
  )
})
