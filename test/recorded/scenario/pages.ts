import { headerOf } from '../http.ts'
import type { World } from '../world.ts'

/**
 * Pages and what they are made of, the description, and what no route takes. Bundled and served scripts and styles are
 * compared by status and headers only: their text changes whenever code moves.
 */
export async function pages({ record, recordRaw }: World): Promise<void> {
  for (const path of [
    '/',
    '/demo',
    '/docs/api',
    '/docs/api/',
    '/docs/errors',
    '/openapi.json',
    '/livez',
    '/readyz',
  ]) {
    await record({ name: `page ${path}`, method: 'GET', path })
  }
  for (const path of [
    '/healthz',
    '/favicon.ico',
    '/v1',
    '/v1/unknown',
    '/v1/sessions/',
    '//',
    '/v2/collect/unknown',
  ]) {
    await record({ name: `nothing at ${path}`, method: 'GET', path })
  }
  await record({ name: 'metrics', method: 'GET', path: '/metrics', compared: 'comments' })
  await record({ name: 'mark', method: 'GET', path: '/assets/mark.svg' })
  const own = ['site.css', 'demo.css', 'demo.js', 'render.js', 'dom.js'].map(
    (file) => `/assets/${file}`,
  )
  const gate = ['main.js', 'state.js', 'consent.css'].map((file) => `/gate/assets/${file}`)
  const docs = ['swagger-ui.css', 'swagger-ui-bundle.js', 'start.js'].map(
    (file) => `/docs/api/static/${file}`,
  )
  for (const path of [...own, ...gate, ...docs]) {
    await record({ name: `asset ${path}`, method: 'GET', path, compared: 'nothing' })
  }
  await browserSdk({ record })
  for (const path of ['/', '/livez', '/t.js', '/v1/sessions', '/openapi.json']) {
    await record({ name: `head ${path}`, method: 'HEAD', path, compared: 'nothing' })
  }
  const broken = ['/v1/sessions/%zz', '/v1/sessions/%00', '/gate/consent/%zz']
  for (const path of broken) await record({ name: `broken path ${path}`, method: 'GET', path })
  await recordRaw('no host', 'GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n')
  await recordRaw('no HTTP', 'HELLO\r\n\r\n')
  await recordRaw(
    'large headers',
    `GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(40_000)}\r\n\r\n`,
  )
  await recordRaw(
    'large URL',
    `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
  )
}

async function browserSdk({ record }: Pick<World, 'record'>): Promise<void> {
  const sdk = { method: 'GET', path: '/t.js', compared: 'nothing' } as const
  const etag = headerOf(await record({ name: 'SDK', ...sdk }), 'etag') ?? ''
  await record({ name: 'SDK, packed', ...sdk, headers: { 'accept-encoding': 'gzip, br' } })
  await record({
    name: 'SDK, not to be packed',
    ...sdk,
    headers: { 'accept-encoding': 'gzip;q=0' },
  })
  await record({ name: 'SDK that is known', ...sdk, headers: { 'if-none-match': etag } })
  await record({
    name: 'SDK that is known among others',
    ...sdk,
    headers: { 'if-none-match': `"x", ${etag}` },
  })
  await record({ name: 'SDK, any', ...sdk, headers: { 'if-none-match': '*' } })
  await record({ name: 'SDK, another known', ...sdk, headers: { 'if-none-match': '"x"' } })
}
