import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { renderPage } from '../../../services/web/docs/markdown.ts'
import { docsRoutes } from '../../../services/web/docs/routes.ts'
import { pages } from '../../structure/pages.ts'
import { root } from '../../support/test-projects.ts'
import { createCollectServer } from './collect-server.ts'

const docsPages = [
  'docs/reports/performance.md',
  ...pages().filter((page) => page.startsWith('docs/')),
]

const server = await createCollectServer()
await docsRoutes(server.app)
afterAll(() => server.close())

const get = (url: string) => server.app.inject({ url })

test('/llms.txt has a title, a summary, and sections of links', async () => {
  const { statusCode, headers, body } = await get('/llms.txt')
  expect([statusCode, headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8'])
  expect(body).toMatch(/^# Tidegate\n\n> /)
  for (const section of body.split(/^## /m).slice(1)) {
    const [, ...lines] = section.trim().split('\n')
    expect(lines.filter((line) => line && !/^- \[[^\]]+\]\([^)\s]+\): \S/.test(line))).toEqual([])
  }
})

test('/llms-full.txt contains every page of the index', async () => {
  const [{ body: index }, { body }] = [await get('/llms.txt'), await get('/llms-full.txt')]
  const files = [...index.matchAll(/\]\((docs\/[^)#]+\.md)\)/g)].map(([, file]) => String(file))
  expect(files.length).toBeGreaterThan(20)
  for (const file of files)
    expect(body).toContain(`<!-- ${file} -->\n${await readFile(path.join(root, file), 'utf8')}`)
})

test('/llms.txt links to every page, to the index of decision records, and has no dead links', async () => {
  const { body } = await get('/llms.txt')
  const links = [...body.matchAll(/\]\(([^)#]+)\)/g)].map(([, link]) => String(link))
  const indexedPages = docsPages.filter(
    (page) => !page.startsWith('docs/internals/adr/') || page.endsWith('README.md'),
  )
  expect(links.filter((link) => link.endsWith('.md')).sort()).toEqual(indexedPages.sort())
  for (const link of links) expect([link, (await get(`/${link}`)).statusCode]).toEqual([link, 200])
})

describe('pages of docs/ as Markdown', () => {
  test('are the unmodified files', async () => {
    expect(docsPages.length).toBeGreaterThan(35)
    for (const page of docsPages) {
      const { headers, body } = await get(`/${page}`)
      const type = 'text/markdown; charset=utf-8'
      expect(headers).toMatchObject({ 'content-type': type, 'cache-control': 'no-cache' })
      expect(body).toBe(await readFile(path.join(root, page), 'utf8'))
    }
  })

  test.each([
    '/docs/guide/nothing.md',
    '/docs/internals/adr/nothing.md',
    '/docs/../package.json',
    '/docs/..%2fpackage.json',
    '/docs/%2e%2e/README.md',
    '/docs/internals/adr/..%2f..%2f..%2fREADME.md',
    '/docs/internals/adr/%2e%2e%2f%2e%2e%2f%2e%2e%2fpackage.json',
    '/docs/examples/express/node_modules/express/package.json',
    '/docs/operate/operations.md%00',
    '/docs/operate/Operations.md',
  ])('%s is not served', async (url) => {
    const { statusCode, body } = await get(url)
    expect([statusCode, JSON.parse(body).error?.code]).toEqual([404, 'request.not_found'])
  })

  test('are not in the OpenAPI document', async () => {
    const { paths } = (await get('/openapi.json')).json()
    expect(Object.keys(paths).filter((url) => /docs|llms/.test(url))).toEqual([])
  })

  test('respond with 405 to other methods than GET', async () => {
    const request = { method: 'POST', url: '/docs/guide/gate.md' } as const
    const { statusCode, headers } = await server.app.inject(request)
    expect([statusCode, headers.allow]).toEqual([405, 'GET, HEAD'])
  })
})

describe('a Markdown page as HTML', () => {
  const render = (markdown: string, pages: string[] = []) =>
    renderPage(markdown, {
      file: 'docs/guide/one.md',
      isPage: (file) => pages.includes(file),
      up: '../../',
    }).html

  test('has unique heading ids', () => {
    expect(render('# A `GET /v1`, twice\n\n## Again\n\n## Again')).toMatch(
      /<h1 id="a-get-v1-twice">.*<h2 id="again">.*<h2 id="again-1">/s,
    )
  })

  test('links to pages by URL path, and not to files that are not served', () => {
    const links =
      '[a](../operate/two.md#part) [b](../examples/x/server.js) [c](https://a.example/) [d](#here)'
    const html = render(links, ['docs/operate/two.md'])
    expect(html).toContain(
      '<a href="../../docs/operate/two#part">a</a> b <a href="https://a.example/">c</a>',
    )
    expect(html).toContain('<a href="#here">d</a>')
  })

  test('links a code span to the example that it names', () => {
    const options = { file: 'docs/guide/one.md', isPage: () => false, up: '../../' }
    const isExample = (file: string) => file === 'docs/examples/a.js'
    const { html } = renderPage('`docs/examples/a.js`, `b.js`', { ...options, isExample })
    expect(html).toContain(
      '<a href="../../docs/examples/a.js"><code>docs/examples/a.js</code></a>, <code>b.js</code>',
    )
  })

  test('turns consecutive code blocks with bold titles into tabs', () => {
    const html = render(
      '**A**\n\n<!-- label -->\n```js\nconst a = 1\n```\n\n**B & C**\n\n```\n<b>\n```\n\n**D** is text.',
    )
    expect(html).toMatch(
      /^<div class="tabs"><section data-tab="A"><p>A<\/p><pre tabindex="0"><code><span class="hljs-keyword">const<\/span> a = .*<section data-tab="B &amp; C">.*<code>&lt;b&gt;<\/code><\/pre>\n<\/section><\/div>\n<p><strong>D<\/strong> is text/s,
    )
  })

  test('escapes text', () => {
    expect(render('`<script>` and a & b')).toContain('<code>&lt;script&gt;</code> and a &amp; b')
  })
})

describe('pages of docs/ as HTML', () => {
  test('are complete, and every link leads to an existing page and heading', async () => {
    const ids = new Map<string, Set<string>>()
    const links: { from: string; to: URL }[] = []
    for (const file of docsPages) {
      const url = `/${file.replace(/\.md$/, '')}`
      const { headers, body } = await get(url)
      expect(headers['content-type']).toBe('text/html; charset=utf-8')
      expect(headers['content-security-policy']).not.toContain('unsafe')
      ids.set(url, new Set([...body.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id ?? '')))
      for (const [, href = ''] of body.matchAll(/<a [^>]*?href="([^"]+)"/g))
        if (!/^https?:/.test(href)) links.push({ from: url, to: new URL(href, `http://a${url}`) })
    }
    const [toPages, elsewhere] = [true, false].map((isPage) =>
      links.filter(({ to }) => ids.has(to.pathname) === isPage),
    )
    expect(toPages?.length).toBeGreaterThan(500)
    const broken = toPages?.filter(
      ({ to }) => to.hash && !ids.get(to.pathname)?.has(decodeURIComponent(to.hash.slice(1))),
    )
    expect(broken).toEqual([])
    const otherPaths = new Set(elsewhere?.map(({ to }) => to.pathname))
    const pages = ['/', '/docs', '/docs/errors']
    for (const url of otherPaths)
      if (!pages.includes(url)) expect([url, (await get(url)).statusCode]).toEqual([url, 200])
    expect(pages.filter((page) => !otherPaths.has(page))).toEqual([])
  })

  test('have pictures that load', async () => {
    const types = { png: 'image/png', svg: 'image/svg+xml' }
    const found = { png: 0, svg: 0 }
    for (const page of docsPages) {
      const url = `/${page.replace(/\.md$/, '')}`
      const { body } = await get(url)
      for (const [, src = ''] of body.matchAll(/<img src="([^"]+)" alt="[^"]+"/g)) {
        const type = src.endsWith('.svg') ? 'svg' : 'png'
        const { pathname } = new URL(src, `http://a${url}`)
        const { statusCode, headers } = await get(pathname)
        expect([src, statusCode, headers['content-type']]).toEqual([src, 200, types[type]])
        found[type] += 1
      }
    }
    expect(found.png).toBeGreaterThan(2)
    expect(found.svg).toBeGreaterThan(8)
  })

  test('are listed at /docs, with and without a trailing slash', async () => {
    expect((await get('/docs')).body).toContain('<a href="docs/guide/scoring">Scoring</a>')
    expect((await get('/docs/')).body).toContain('<a href="../docs/guide/scoring">Scoring</a>')
  })

  test('are in the search index, with the URL and text of each heading', async () => {
    const entries: { address: string }[] = (await get('/docs/search.json')).json()
    const found = entries.find(
      ({ address }) => address === 'docs/reference/scoring-model#handshakes',
    )
    expect(found).toMatchObject({ title: 'Handshakes', text: expect.stringContaining('begin TLS') })
  })
})
