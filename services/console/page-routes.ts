import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../../infra/errors/errors.ts'
import {
  cachedFileRoute,
  contentTypes,
  type FileType,
  isolationHeaders,
  memoizePromise,
  pageHeaders,
} from '../../infra/http/pages.ts'
import { buildAssets } from './bundle.ts'

const referrer = 'no-referrer'
const htmlHeaders = {
  ...pageHeaders({ referrer, caching: 'no-store' }),
  ...isolationHeaders,
  'content-type': contentTypes.html,
}
const assetHeaders = { ...pageHeaders({ referrer, caching: 'no-cache' }), ...isolationHeaders }
const assetTypes: Record<string, FileType> = {
  'main.js': 'js',
  'main.css': 'css',
  'mark.svg': 'svg',
  'questions.js': 'js',
}
// Every path below `/console` returns the page, except these.
const nonPagePaths = /^\/console\/(?:api|assets)(?:\/|$)/

/** Serves the single-page console at `/console` and at every path below it, so that deep links work. */
export async function pageRoutes(
  app: FastifyInstance,
  questionsScript: () => Promise<string>,
): Promise<void> {
  const html = await readFile(path.join(import.meta.dirname, 'pages/index.html'), 'utf8')
  for (const url of ['/console', '/console/*'])
    app.get(url, { schema: { hide: true } }, async (request, reply) => {
      if (nonPagePaths.test(request.url.split('?', 1)[0] ?? ''))
        throw new ApiError('request.not_found')
      return reply.headers(htmlHeaders).send(withRelativeUrls(html, request.url))
    })
  // Builds at the first request, because most processes never serve the console.
  const assets = memoizePromise(async () => {
    const text = await questionsScript()
    return [...(await buildAssets()), { name: 'questions.js', text }]
  })
  for (const [name, type] of Object.entries(assetTypes)) {
    const make = async () => {
      const asset = (await assets()).find((built) => built.name === name)
      if (!asset) throw new Error(`The console's bundle has no ${name}`)
      return Buffer.from(asset.text)
    }
    cachedFileRoute(app, { url: `/console/assets/${name}`, type, make }, assetHeaders)
  }
}

// Makes URLs relative, because a proxy may serve the console under a path that the server does not know:
// `../../console/assets/main.js` on `/console/live/sessions`.
function withRelativeUrls(html: string, url: string): string {
  const [pathname = ''] = url.split('?', 1)
  const up = '../'.repeat(pathname.split('/').length - 2)
  return html.replaceAll('"/console/', `"${up}console/`)
}
