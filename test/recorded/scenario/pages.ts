import { type Headers, headerOf } from '../http.ts'
import type { World } from '../world.ts'

const shown = ['/', '/demo', '/docs/errors', '/openapi.json']
const missing = ['/healthz', '/favicon.ico', '/v1', '/v1/unknown', '/v1/sessions/', '//']
const own = ['site.css', 'demo.css', 'demo.js', 'render.js', 'dom.js']
const gate = ['main.js', 'state.js', 'consent.css']

/**
 * Pages and their files, the description, and paths without a route. Generated pages, scripts and styles are
 * compared by status and headers only: their text changes whenever code moves.
 */
export async function pages({ record, recordRaw, send }: World): Promise<void> {
  for (const path of [...shown, '/livez', '/readyz']) await record(`page ${path}`, `GET ${path}`)
  for (const path of [...missing, '/v2/collect/unknown'])
    await record(`nothing at ${path}`, `GET ${path}`)
  await send({ name: 'metrics', method: 'GET', path: '/metrics', compared: 'comments' })
  await record('mark', 'GET /assets/mark.svg')
  const assets = [
    ...own.map((file) => `/assets/${file}`),
    ...gate.map((file) => `/gate/assets/${file}`),
    '/docs/api',
    '/docs/api/',
    '/docs/api/sessions',
    '/docs/assets/api.css',
  ]
  for (const path of assets)
    await send({ name: `asset ${path}`, method: 'GET', path, compared: 'nothing' })
  await browserSdk(send)
  for (const path of ['/', '/livez', '/t.js', '/v1/sessions', '/openapi.json'])
    await send({ name: `head ${path}`, method: 'HEAD', path, compared: 'nothing' })
  for (const path of ['/v1/sessions/%zz', '/v1/sessions/%00', '/gate/consent/%zz'])
    await record(`broken path ${path}`, `GET ${path}`)
  const [long, end] = ['x'.repeat(40_000), 'Connection: close\r\n\r\n']
  await recordRaw('no host', `GET /livez HTTP/1.1\r\n${end}`)
  await recordRaw('no HTTP', 'HELLO\r\n\r\n')
  await recordRaw('large headers', `GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${long}\r\n\r\n`)
  await recordRaw('large URL', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n${end}`)
}

async function browserSdk(send: World['send']): Promise<void> {
  const sdk = (name: string, headers?: Headers) =>
    send({ name: `SDK${name}`, method: 'GET', path: '/t.js', compared: 'nothing', headers })
  const etag = headerOf(await sdk(''), 'etag') ?? ''
  await sdk(', packed', { 'accept-encoding': 'gzip, br' })
  await sdk(', not to be packed', { 'accept-encoding': 'gzip;q=0' })
  await sdk(' that is known', { 'if-none-match': etag })
  await sdk(' that is known among others', { 'if-none-match': `"x", ${etag}` })
  await sdk(', any', { 'if-none-match': '*' })
  await sdk(', another known', { 'if-none-match': '"x"' })
}
