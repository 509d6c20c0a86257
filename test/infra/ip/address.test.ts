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

  it.each(['8.8.8.8', '2001:4860:4860::8888', '2A00:1450::1', '2620:0:0:0:0:0:0:1'])(
    '%s is a public address in full',
    (ip) => {
      expect(isPublicAddressInFull(ip)).toBe(true)
    },
  )

  it.each([
    '',
    ' 8.8.8.8',
    '8.8.8.8 ',
    '8.8.8',
    '8.8.8.8/32',
    '134744072',
    '0x8.8.8.8',
    '010.8.8.8',
    '8.8.8.256',
    'example.com',
    '10.0.0.1',
    '100.64.0.1',
    '127.0.0.1',
    '169.254.1.1',
    '172.16.0.1',
    '192.0.2.1',
    '192.168.1.1',
    '198.18.0.1',
    '198.51.100.7',
    '203.0.113.9',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '0.0.0.0',
    '::',
    '::1',
    '::ffff:8.8.8.8',
    '64:ff9b::808:808',
    '100::1',
    '2001::1',
    '2001:db8::1',
    '2002:808:808::1',
    '3fff::1',
    '4000::1',
    'fc00::1',
    'fe80::1',
    'fe80::1%eth0',
    '2001:4860:4860::8888%eth0',
    'ff02::1',
    '[2001:4860:4860::8888]',
  ])('%j is not', (ip) => {
    expect(isPublicAddressInFull(ip)).toBe(false)
  })
})
