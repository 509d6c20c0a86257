import { describe, expect, test } from 'vitest'
import { checkSameOrigin, requireSecureSite } from '../../../services/console/site.ts'

const secure = { name: '__Host-tidegate_console', secure: true }
const local = { name: 'tidegate_console', secure: false }

const plainUrl = 'http://127.0.0.1:8787'
const publicUrl = 'https://tidegate.example'

test.each([
  ['https', 'tidegate.example', plainUrl, 'https://tidegate.example', secure],
  ['https', 'localhost:8443', plainUrl, 'https://localhost:8443', secure],
  // An untrusted proxy terminates TLS.
  ['http', 'tidegate.example', publicUrl, 'https://tidegate.example', secure],
  ['http', 'tidegate.example', `${publicUrl}/below`, 'https://tidegate.example', secure],
  ['http', '127.0.0.1:8787', plainUrl, 'http://127.0.0.1:8787', local],
  ['http', '127.0.0.1:9090', publicUrl, 'http://127.0.0.1:9090', local],
  ['http', '127.1.2.3', plainUrl, 'http://127.1.2.3', local],
  ['http', '[::1]:8787', plainUrl, 'http://[::1]:8787', local],
  ['http', 'LOCALHOST:80', plainUrl, 'http://localhost', local],
  ['http', 'console.localhost:8787', plainUrl, 'http://console.localhost:8787', local],
])('the site of %s at %s with PUBLIC_URL %s is %s', (protocol, host, url, origin, cookie) => {
  expect(requireSecureSite({ protocol: protocol as 'http' | 'https', host }, url)).toEqual({
    origin,
    cookie,
  })
})

test.each([
  ['tidegate.example', plainUrl],
  ['tidegate.example:8080', publicUrl],
  ['10.0.0.7:8787', plainUrl],
  ['localhost.example', plainUrl],
  ['127.0.0.1.example', plainUrl],
  ['tidegate.example', 'http://tidegate.example'],
  ['', plainUrl],
  ['a b', plainUrl],
])('plain HTTP at "%s" with PUBLIC_URL %s throws an error that names the settings', (host, url) => {
  expect(() => requireSecureSite({ protocol: 'http', host }, url)).toThrow(
    /HTTPS.*PUBLIC_URL.*TRUSTED_PROXIES/,
  )
})

describe('a mutation', () => {
  const site = requireSecureSite({ protocol: 'http', host: 'localhost:8787' }, plainUrl)
  const from = (headers: Record<string, string>) => () => checkSameOrigin(site, { headers })

  test('is accepted from the same origin', () => {
    expect(from({ origin: 'http://localhost:8787' })).not.toThrow()
    expect(from({ origin: 'http://localhost:8787', 'sec-fetch-site': 'same-origin' })).not.toThrow()
  })

  test.each([
    [{}],
    [{ origin: 'null' }],
    [{ origin: 'https://localhost:8787' }],
    [{ origin: 'http://127.0.0.1:8787' }],
    [{ origin: 'http://localhost:8787', 'sec-fetch-site': 'cross-site' }],
    [{ origin: 'http://localhost:8787', 'sec-fetch-site': 'none' }],
  ])('throws for another origin: %o', (headers) => {
    expect(from(headers)).toThrow(/origin other than the console/)
  })
})
