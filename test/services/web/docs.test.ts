import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { renderPage } from '../../../services/web/docs/markdown.ts'
import { docsRoutes } from '../../../services/web/docs/routes.ts'
import { pages } from '../../structure/pages.ts'
import { root } from '../../support/test-projects.ts'
import { createCollectServer } from './collect-server.ts'

const written = [
  'docs/reports/performance.md',
  ...pages().filter((page) => page.startsWith('docs/')),
]

const server = await createCollectServer()
await docsRoutes(server.app)
afterAll(() => server.close())

const get = (url: string) => server.app.inject({ url })

test('/llms.txt has a name, a summary, and sections of links', async () => {
  const { statusCode, headers, body } = await get('/llms.txt')
  expect([statusCode, headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8'])
  expect(body).toMatch(/^# Tidegate\n\n> /)
  for (const section of body.split(/^## /m).slice(1)) {
    const [, ...lines] = section.trim().split('\n')
    expect(lines.filter((line) => line && !/^- \[[^\]]+\]\([^)\s]+\): \S/.test(line))).toEqual([])
  }
})

test('/llms-full.txt has every page that the index names', async () => {
  const [{ body: index }, { body }] = [await get('/llms.txt'), await get('/llms-full.txt')]
  const files = [...index.matchAll(/\]\((docs\/[^)#]+\.md)\)/g)].map(([, file]) => String(file))
  expect(files.length).toBeGreaterThan(20)
  for (const file of files)
    expect(body).toContain(`<!-- ${file} -->\n${await readFile(path.join(root, file), 'utf8')}`)
})

test('/llms.txt leads to every page, decisions by their index, and to nothing that is not there', async () => {
  const { body } = await get('/llms.txt')
  const links = [...body.matchAll(/\]\(([^)#]+)\)/g)].map(([, link]) => String(link))
  const own = written.filter(
    (page) => !page.startsWith('docs/internals/adr/') || page.endsWith('README.md'),
  )
  expect(links.filter((link) => link.endsWith('.md')).sort()).toEqual(own.sort())
  for (const link of links) expect([link, (await get(`/${link}`)).statusCode]).toEqual([link, 200])
})

describe('pages of docs/ as Markdown', () => {
  test('are as they are written', async () => {
    expect(written.length).toBeGreaterThan(35)
    for (const page of written) {
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
  ])('%s is not there', async (url) => {
    const { statusCode, body } = await get(url)
    expect([statusCode, JSON.parse(body).error?.code]).toEqual([404, 'request.not_found'])
  })

  test('are no part of the interface description', async () => {
    const { paths } = (await get('/openapi.json')).json()
    expect(Object.keys(paths).filter((url) => /docs|llms/.test(url))).toEqual([])
  })

  test('take GET only, and say so', async () => {
    const request = { method: 'POST', url: '/docs/guide/gate.md' } as const
    const { statusCode, headers } = await server.app.inject(request)
    expect([statusCode, headers.allow]).toEqual([405, 'GET, HEAD'])
  })
})

describe('a page of Markdown as HTML', () => {
  const render = (markdown: string, others: string[] = []) =>
    renderPage(markdown, {
      file: 'docs/guide/one.md',
      isPage: (file) => others.includes(file),
      up: '../../',
    }).html

  test('has headings that links find, also those of the same words', () => {
    expect(render('# A `GET /v1`, twice\n\n## Again\n\n## Again')).toMatch(
      /<h1 id="a-get-v1-twice">.*<h2 id="again">.*<h2 id="again-1">/s,
    )
  })

  test('links to pages by their address, and not to files that nobody serves', () => {
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

  test('makes one list of tabs of blocks in a row that have titles in bold', () => {
    const html = render(
      '**A**\n\n<!-- label -->\n```js\nconst a = 1\n```\n\n**B & C**\n\n```\n<b>\n```\n\n**D** is text.',
    )
    expect(html).toMatch(
      /^<div class="tabs"><section data-tab="A"><p>A<\/p><pre tabindex="0"><code><span class="hljs-keyword">const<\/span> a = .*<section data-tab="B &amp; C">.*<code>&lt;b&gt;<\/code><\/pre>\n<\/section><\/div>\n<p><strong>D<\/strong> is text/s,
    )
  })

  test('shows text as text', () => {
    expect(render('`<script>` and a & b')).toContain('<code>&lt;script&gt;</code> and a &amp; b')
  })
})

describe('pages of docs/ as HTML', () => {
  test('are all there, and every link leads to a page and to a heading of it', async () => {
    const ids = new Map<string, Set<string>>()
    const links: { from: string; to: URL }[] = []
    for (const file of written) {
      const url = `/${file.replace(/\.md$/, '')}`
      const { headers, body } = await get(url)
      expect(headers['content-type']).toBe('text/html; charset=utf-8')
      expect(headers['content-security-policy']).not.toContain('unsafe')
      ids.set(url, new Set([...body.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id ?? '')))
      for (const [, href = ''] of body.matchAll(/<a [^>]*?href="([^"]+)"/g))
        if (!/^https?:/.test(href)) links.push({ from: url, to: new URL(href, `http://a${url}`) })
    }
    const [between, elsewhere] = [true, false].map((isPage) =>
      links.filter(({ to }) => ids.has(to.pathname) === isPage),
    )
    expect(between?.length).toBeGreaterThan(500)
    const broken = between?.filter(
      ({ to }) => to.hash && !ids.get(to.pathname)?.has(decodeURIComponent(to.hash.slice(1))),
    )
    expect(broken).toEqual([])
    const others = new Set(elsewhere?.map(({ to }) => to.pathname))
    const pages = ['/', '/docs', '/docs/errors']
    for (const other of others)
      if (!pages.includes(other))
        expect([other, (await get(other)).statusCode]).toEqual([other, 200])
    expect(pages.filter((page) => !others.has(page))).toEqual([])
  })

  test('have their pictures', async () => {
    const types = { png: 'image/png', svg: 'image/svg+xml' }
    const found = { png: 0, svg: 0 }
    for (const page of written) {
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

  test('are listed by /docs, with and without a slash at the end', async () => {
    expect((await get('/docs')).body).toContain('<a href="docs/guide/scoring">Scoring</a>')
    expect((await get('/docs/')).body).toContain('<a href="../docs/guide/scoring">Scoring</a>')
  })

  test('can be searched: each part has its address and its words', async () => {
    const entries: { address: string }[] = (await get('/docs/search.json')).json()
    const found = entries.find(
      ({ address }) => address === 'docs/reference/scoring-model#handshakes',
    )
    expect(found).toMatchObject({ title: 'Handshakes', text: expect.stringContaining('begin TLS') })
  })
})
