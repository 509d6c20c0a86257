import { describe, expect, it } from 'vitest'
import { networkPrefix, plainAddress } from '../../../infra/ip/address.ts'

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
})
