import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { docsRoutes } from '../../../services/web/docs/routes.ts'
import { pages } from '../../structure/pages.ts'
import { root } from '../../support/test-projects.ts'
import { type CollectServer, createCollectServer } from './collect-server.ts'

const written = [
  'docs/reports/performance.md',
  ...pages().filter((page) => page.startsWith('docs/')),
]
let server: CollectServer

beforeAll(async () => {
  server = await createCollectServer()
  await docsRoutes(server.app)
})
afterAll(() => server.close())

const get = (url: string) => server.app.inject({ url })
const linksIn = (text: string) =>
  [...text.matchAll(/\]\(([^)#]+)\)/g)].map(([, link]) => String(link))

describe('/llms.txt', () => {
  test('has a name, a summary, and sections of links', async () => {
    const { statusCode, headers, body } = await get('/llms.txt')
    expect([statusCode, headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8'])
    expect(body).toMatch(/^# Tidegate\n\n> /)
    for (const section of body.split(/^## /m).slice(1)) {
      const [, ...lines] = section.trim().split('\n')
      expect(lines.filter((line) => line && !/^- \[[^\]]+\]\([^)\s]+\): \S/.test(line))).toEqual([])
    }
  })

  test('leads to every page, decisions by their index, and to nothing that is not there', async () => {
    const links = linksIn((await get('/llms.txt')).body)
    const own = written.filter(
      (page) => !page.startsWith('docs/internals/adr/') || page.endsWith('README.md'),
    )
    expect(links.filter((link) => link.endsWith('.md')).sort()).toEqual(own.sort())
    for (const link of links)
      expect([link, (await get(`/${link}`)).statusCode]).toEqual([link, 200])
  })
})

describe('pages of docs/', () => {
  test('are Markdown, as they are written', async () => {
    expect(written.length).toBeGreaterThan(35)
    for (const page of written) {
      const { statusCode, headers, body } = await get(`/${page}`)
      expect([page, statusCode, headers['content-type'], headers['cache-control']]).toEqual([
        page,
        200,
        'text/markdown; charset=utf-8',
        'no-cache',
      ])
      expect(body).toBe(await readFile(path.join(root, page), 'utf8'))
    }
  })

  test('lead to each other', async () => {
    const links = written.map(async (page) =>
      linksIn((await get(`/${page}`)).body)
        .filter((link) => link.endsWith('.md') && !link.includes('://'))
        .map((link) => new URL(link, `http://a/${page}`).pathname),
    )
    const targets = new Set((await Promise.all(links)).flat())
    expect(targets.size).toBeGreaterThan(30)
    for (const target of targets)
      expect([target, (await get(target)).statusCode]).toEqual([target, 200])
  })

  test.each([
    '/docs/guide/nothing.md',
    '/docs/internals/adr/nothing.md',
    '/docs/../package.json',
    '/docs/..%2fpackage.json',
    '/docs/%2e%2e/README.md',
    '/docs/internals/adr/..%2f..%2f..%2fREADME.md',
    '/docs/internals/adr/%2e%2e%2f%2e%2e%2f%2e%2e%2fpackage.json',
    '/docs/examples/express/package.json',
    '/docs/operate/operations.md%00',
    '/docs/operate/Operations.md',
  ])('%s is not there', async (url) => {
    const { statusCode, headers, body } = await get(url)
    expect([statusCode, JSON.parse(body).error?.code]).toEqual([404, 'request.not_found'])
    expect(headers['content-type']).toContain('application/json')
  })

  test('are no part of the interface description', async () => {
    const { paths } = (await get('/openapi.json')).json()
    expect(
      Object.keys(paths).filter((url) => url.includes('docs') || url.includes('llms')),
    ).toEqual([])
  })
})

test('another method is refused with what is allowed', async () => {
  const { statusCode, headers } = await server.app.inject({
    method: 'POST',
    url: '/docs/guide/gate.md',
  })
  expect([statusCode, headers.allow]).toEqual([405, 'GET, HEAD'])
})
