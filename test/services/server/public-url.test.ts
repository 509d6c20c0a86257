import { expect, test } from 'vitest'
import { hasConsentAddress, publicUrlOf } from '../../../services/server/http.ts'

test.each([
  ['127.0.0.1', 'http://127.0.0.1:8787'],
  ['::1', 'http://[::1]:8787'],
  ['2001:DB8:0::9', 'http://[2001:db8::9]:8787'],
  ['Localhost', 'http://localhost:8787'],
  ['0.0.0.0', 'http://127.0.0.1:8787'],
  ['::', 'http://127.0.0.1:8787'],
  ['0:0:0:0:0:0:0:0', 'http://127.0.0.1:8787'],
  ['::ffff:0.0.0.0', 'http://127.0.0.1:8787'],
])('the default public URL of a server on %s is %s', (HOST, url) => {
  expect(publicUrlOf({ HOST }, 8787)).toBe(url)
  expect(publicUrlOf({ HOST, PUBLIC_URL: 'https://a.example' }, 8787)).toBe('https://a.example')
})

test('the default port is omitted', () => {
  expect(publicUrlOf({ HOST: '127.0.0.1' }, 80)).toBe('http://127.0.0.1')
})

test('throws for a HOST that cannot be part of a URL, unless PUBLIC_URL is set', () => {
  expect(() => publicUrlOf({ HOST: 'fe80::1%eth0' }, 8787)).toThrow(
    /^PUBLIC_URL is not set, and browsers cannot use HOST fe80::1%eth0/,
  )
})

test.each(['0.0.0.0', '::', ''])('consent pages of a server on %s need PUBLIC_URL', (HOST) => {
  expect(hasConsentAddress({ HOST })).toBe(false)
  expect(hasConsentAddress({ HOST, PUBLIC_URL: 'https://a.example' })).toBe(true)
  expect(hasConsentAddress({ HOST, PUBLIC_URL: 'https://a.example/below' })).toBe(false)
})

test.each(['127.0.0.1', '::1', 'tidegate.internal'])(
  'consent pages of a server on %s work without PUBLIC_URL',
  (HOST) => {
    expect(hasConsentAddress({ HOST })).toBe(true)
  },
)
