import { expect, test } from 'vitest'
import { isOriginAllowed } from '../../../infra/access/key-checks.ts'

const allowedOrigins = [
  'https://shop.example',
  'https://shop.example:8443',
  'http://localhost:3000',
  'http://127.0.0.1:5173',
  'http://[::1]:8080',
  'https://xn--bcher-kva.example',
  'https://*.app.example',
]

test.each([
  // Exact: scheme, host and port.
  ['https://shop.example', true],
  ['https://shop.example:8443', true],
  ['https://shop.example:8444', false],
  ['http://shop.example', false],
  ['https://www.shop.example', false],
  ['https://shop.example.evil.example', false],
  ['https://evil-shop.example', false],
  ['https://shop.example.', false],
  // A browser leaves the default port out.
  ['https://shop.example:443', false],
  // Lower case and punycode are what browsers send; other case is the same origin.
  ['HTTPS://Shop.Example', true],
  ['https://xn--bcher-kva.example', true],
  ['https://bücher.example', false],
  // Test keys: http too, with any host and port.
  ['http://localhost:3000', true],
  ['http://localhost:3001', false],
  ['http://localhost', false],
  ['https://localhost:3000', false],
  ['http://127.0.0.1:5173', true],
  ['http://127.1:5173', false],
  ['http://[::1]:8080', true],
  ['http://[::2]:8080', false],
  // Wildcard: any depth, https, default port.
  ['https://a.app.example', true],
  ['https://a.b.app.example', true],
  ['https://A.App.Example', true],
  ['https://app.example', false],
  ['https://.app.example', false],
  ['https://evilapp.example', false],
  ['http://a.app.example', false],
  ['https://a.app.example:8443', false],
  ['https://a.app.example.', false],
  ['https://a.app.example.evil.example', false],
  // Not web origins.
  ['null', false],
  ['', false],
  [undefined, false],
  ['https://shop.example/', false],
  ['https://shop.example/path', false],
  ['https://shop.example?a', false],
  ['https://shop.example#a', false],
  ['https://user@shop.example', false],
  ['https://evil.example\\.app.example', false],
  ['https://evil.example/.app.example', false],
  ['blob:https://shop.example', false],
  ['chrome-extension://abcdef', false],
  ['shop.example', false],
  ['//shop.example', false],
])('%s: %s', (origin, allowed) => {
  expect(isOriginAllowed(origin, allowedOrigins)).toBe(allowed)
})

test('an empty list allows any origin, and requests without one', () => {
  for (const origin of ['https://any.example', 'null', '', undefined])
    expect(isOriginAllowed(origin, [])).toBe(true)
})
