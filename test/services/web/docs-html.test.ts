import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { renderPage } from '../../../services/web/docs/markdown.ts'
import { docsRoutes } from '../../../services/web/docs/routes.ts'
import { pages } from '../../structure/pages.ts'
import { type CollectServer, createCollectServer } from './collect-server.ts'

const files = ['docs/reports/performance.md', ...pages().filter((page) => page.startsWith('docs/'))]
let server: CollectServer

beforeAll(async () => {
  server = await createCollectServer()
  await docsRoutes(server.app)
})
afterAll(() => server.close())

const get = async (url: string) => {
  const { statusCode, headers, body } = await server.app.inject({ url })
  return { statusCode, headers, body }
}
const render = (markdown: string, others: string[] = []) =>
  renderPage(markdown, {
    file: 'docs/guide/one.md',
    isPage: (file) => others.includes(file),
    up: '../../',
  }).html

describe('a page of Markdown as HTML', () => {
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

  test('shows text as text', () => {
    expect(render('`<script>` and a & b')).toContain('<code>&lt;script&gt;</code> and a &amp; b')
  })
})

describe('the docs', () => {
  test('every page is there, and every link leads to a page and to a heading of it', async () => {
    const ids = new Map<string, Set<string>>()
    const links: { from: string; to: URL }[] = []
    for (const file of files) {
      const url = `/${file.replace(/\.md$/, '')}`
      const { statusCode, headers, body } = await get(url)
      expect([url, statusCode, headers['content-type']]).toEqual([
        url,
        200,
        'text/html; charset=utf-8',
      ])
      expect(headers['content-security-policy']).not.toContain('unsafe')
      ids.set(url, new Set([...body.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id ?? '')))
      for (const [, href = ''] of body.matchAll(/<a [^>]*?href="([^"]+)"/g))
        if (!/^https?:/.test(href)) links.push({ from: url, to: new URL(href, `http://a${url}`) })
    }
    const pagesOnly = links.filter(
      ({ to }) => to.pathname.startsWith('/docs/') && ids.has(to.pathname),
    )
    expect(pagesOnly.length).toBeGreaterThan(500)
    const broken = pagesOnly.filter(
      ({ to }) =>
        to.hash !== '' && !ids.get(to.pathname)?.has(decodeURIComponent(to.hash.slice(1))),
    )
    expect(broken.map(({ from, to }) => `${from} -> ${to.pathname}${to.hash}`)).toEqual([])
    const elsewhere = links.filter(({ to }) => !ids.has(to.pathname)).map(({ to }) => to.pathname)
    expect([...new Set(elsewhere)].sort()).toEqual(['/docs', '/docs/api', '/docs/errors'])
  })

  test('every picture of a page is answered', async () => {
    const { body } = await get('/docs/guide/console')
    const pictures = [...body.matchAll(/<img src="(pictures[^"]+)" alt="[^"]+"/g)]
    expect(pictures.length).toBeGreaterThan(2)
    for (const [, src] of pictures) {
      const { statusCode, headers } = await get(`/docs/guide/${src}`)
      expect([src, statusCode, headers['content-type']]).toEqual([src, 200, 'image/png'])
    }
  })

  test('/docs lists them, with and without a slash at the end', async () => {
    const plain = await get('/docs')
    const slash = await get('/docs/')
    expect(plain.body).toContain('<a href="docs/guide/scoring">Scoring</a>')
    expect(slash.body).toContain('<a href="../docs/guide/scoring">Scoring</a>')
  })

  test('can be searched: each part has its address and its words', async () => {
    const { body } = await get('/docs/search.json')
    const entries: { address: string; title: string; text: string }[] = JSON.parse(body)
    const found = entries.find(({ address }) => address === 'docs/guide/scoring#handshakes')
    expect(found).toMatchObject({ title: 'Handshakes', text: expect.stringContaining('begin TLS') })
  })
})
