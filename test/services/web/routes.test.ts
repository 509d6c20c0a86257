import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import { openToken, sealToken } from '../../../infra/wire/sealed-token.ts'
import { webRoutes } from '../../../services/web/routes.ts'
import { bundleSdk, maxGzipBytes } from '../../../services/web/sdk-route.ts'
import { root } from '../../support/test-projects.ts'
import { createCollectServer } from './collect-server.ts'

const sessionId = 'sid_00000000000000000000000001'
const otherId = 'sid_00000000000000000000000002'

const server = await createCollectServer()
const { app, publishableKey, secretHash } = server
const demo = {
  baseUrl: () => 'https://dev.example',
  publishableKey,
  openToken: (token: string) => openToken(token, { secretHash }),
  readSession: async (id: string) => ({ data: { id }, meta: { request_id: 'req_x' } }),
}
await webRoutes(app, { random: randomBytes, demo })
afterAll(() => server.close())

function tokenOf(payload: unknown, secretHash = server.secretHash): string {
  return sealToken({ payload, secretHashes: [secretHash], random: randomBytes })
}

const verify = (sealedToken: unknown, { app } = server) =>
  app.inject({ method: 'POST', url: '/demo/api/verify', payload: { sealedToken } })

describe('/t.js', () => {
  const loadSdk = (headers: Record<string, string>) => server.app.inject({ url: '/t.js', headers })

  test('is one small module that contains no secret and no scoring', async () => {
    const { plain: source, gzipped } = await bundleSdk()
    expect(gzipped.length).toBeLessThan(maxGzipBytes)
    expect(gunzipSync(gzipped).equals(source)).toBe(true)
    const text = source.toString()
    expect(text).toMatch(/export\s*\{[^}]*\bas start\b/)
    expect(text).not.toMatch(/sk_(live|test)_|verdict|risk_score|\bzod\b/i)
  })

  test('may be loaded by any site, and is downloaded again only if it changed', async () => {
    const first = await loadSdk({ 'accept-encoding': 'gzip, br' })
    expect(first.statusCode).toBe(200)
    expect(first.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'access-control-allow-origin': '*',
      'content-encoding': 'gzip',
      vary: 'Accept-Encoding',
      'cache-control': expect.stringContaining('max-age='),
    })
    const again = await loadSdk({ 'if-none-match': String(first.headers.etag) })
    expect([again.statusCode, again.body]).toEqual([304, ''])
    const plain = await loadSdk({ 'accept-encoding': 'gzip;q=0' })
    expect(plain.headers['content-encoding']).toBeUndefined()
    expect(plain.body).toContain('export')
  })
})

describe('pages', () => {
  test.each(['/', '/demo'])('%s loads only resources of this server', async (url) => {
    const { statusCode, headers, body } = await server.app.inject({ url })
    expect(statusCode).toBe(200)
    expect(headers['content-security-policy']).toContain("default-src 'none'")
    expect(headers['content-security-policy']).not.toContain('unsafe')
    const links = [...body.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, link]) => String(link))
    expect(links.length).toBeGreaterThan(3)
    const outside = links.filter((link) => /^\w+:|^\/\//.test(link))
    // The URL of the example server in the quickstart.
    expect(outside.filter((link) => link !== 'http://127.0.0.1:3000')).toEqual([])
    for (const link of links.filter((path) => /^\/?(docs\/)?assets\//.test(path)))
      expect(
        (await server.app.inject({ url: new URL(link, 'http://a').pathname })).statusCode,
      ).toBe(200)
  })

  test('the start page links to the demo and the docs, and shows the quickstart with the key of the server', async () => {
    const { body } = await server.app.inject({ url: '/' })
    for (const link of ['/demo', 'docs', 'docs/api', 'docs/errors', 'docs/guide/quickstart'])
      expect(body).toContain(`href="${link}"`)
    for (const url of ['/', '/docs/guide/quickstart', '/docs/guide/quickstart.md']) {
      const { body } = await server.app.inject({ url })
      expect(body).toContain(publishableKey)
      expect(body).toContain('https://dev.example/sdk/server.tgz')
      expect(body).not.toMatch(/pk_live_\.\.\.|http:\/\/127\.0\.0\.1:8787/)
    }
  })

  test('the start page shows numbers that the README reports', async () => {
    const { body } = await server.app.inject({ url: '/' })
    const readme = readFileSync(path.join(root, 'README.md'), 'utf8')
    const totals = [...body.matchAll(/<dt>\S+ of (\S+)<\/dt>/g)].map(([, total]) => total)
    expect(totals.length).toBe(3)
    for (const total of totals) expect(readme).toContain(` ${total} `)
    expect(body.replace(/<[^>]*>/g, '')).toContain('83 injected failures')
    expect(readme).toContain('83 injected failures')
  })

  test('there is no demo without a publishable key for it', async () => {
    const bare = await createCollectServer()
    await webRoutes(bare.app, { random: randomBytes })
    expect((await bare.app.inject({ url: '/demo' })).statusCode).toBe(404)
    const { body } = await bare.app.inject({ url: '/' })
    expect(body).not.toContain('href="/demo"')
    expect(body).toContain('pk_live_...')
    expect((await verify('x', bare)).statusCode).toBe(404)
    await bare.close()
  })
})

describe("the demo's back end", () => {
  test('opens a token and returns its session, with a link to that session only', async () => {
    const response = await verify(
      tokenOf({ session_id: sessionId, decision: { verdict: 'human' } }),
    )
    expect(response.statusCode).toBe(200)
    const body = response.json()
    expect(body).toMatchObject({
      verification: { session_id: sessionId },
      session: { data: { id: sessionId } },
    })
    const raw = await server.app.inject({ url: body.raw_url })
    expect(raw.json()).toEqual(body.session)
    const other = await server.app.inject({ url: body.raw_url.replace(sessionId, otherId) })
    expect(other.statusCode).toBe(404)
  })

  test.each([
    ['', 'no proof'],
    ['?proof=', 'an empty proof'],
    [`?proof=${'A'.repeat(43)}`, 'a wrong proof'],
  ])('responds with 404 to the query "%s" (%s)', async (query) => {
    const response = await server.app.inject({ url: `/demo/api/sessions/${sessionId}${query}` })
    expect(response.statusCode).toBe(404)
    expect(response.json().error.code).toBe('request.not_found')
  })

  test('responds with 422 unless the token belongs to its organization', async () => {
    const foreign = tokenOf({ session_id: sessionId }, 'cd'.repeat(32))
    const valid = tokenOf({ session_id: sessionId })
    const changed = `${valid.slice(0, -8)}AAAA${valid.slice(-4)}`
    for (const token of [foreign, changed, 'nonsense', '', 7, undefined, 'A'.repeat(100_001)]) {
      const response = await verify(token)
      expect(response.statusCode, String(token).slice(0, 20)).toBe(422)
      expect(response.json().error.code).toBe('request.validation_failed')
    }
  })
})
