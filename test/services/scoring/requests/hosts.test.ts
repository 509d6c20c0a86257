import { expect, test } from 'vitest'
import { isListedHost, listedHosts } from '../../../../services/scoring/requests/hosts.ts'

const origins = ['https://shop.example', 'https://*.wide.example', 'http://localhost:3000']
const listed = listedHosts({ origins, firstPartyUrls: ['https://own.example/tg'] })

test.each([
  ['shop.example', true],
  ['SHOP.example', true],
  ['shop.example:443', true],
  ['shop.example:8443', true],
  ['a.shop.example', false],
  ['shop.example.evil.example', false],
  ['a.wide.example', true],
  ['wide.example', false],
  ['a.wide.example:8443', true],
  ['localhost:3000', true],
  ['localhost', true],
  ['[::1]:3000', false],
  ['127.0.0.1:3000', false],
  ['own.example', true],
  ['other.example', false],
])('%s is listed: %j', (authority, expected) => {
  expect(isListedHost({ scheme: 'https', authority }, listed)).toBe(expected)
})

test('loopback addresses can be listed', () => {
  const own = listedHosts({ origins: [], firstPartyUrls: ['http://127.0.0.1', 'http://[::1]'] })
  for (const authority of ['127.0.0.1:3000', '[::1]:3000', '[0:0::1]'])
    expect(isListedHost({ scheme: 'http', authority }, own)).toBe(true)
})

test('the scheme does not matter', () => {
  for (const authority of ['shop.example', 'shop.example:80'])
    expect(isListedHost({ scheme: 'http', authority }, listed)).toBe(true)
})

test('an empty list has no hosts', () => {
  const none = listedHosts({ origins: [], firstPartyUrls: [] })
  expect(isListedHost({ scheme: 'https', authority: 'shop.example' }, none)).toBe(false)
})
