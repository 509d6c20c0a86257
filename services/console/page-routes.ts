import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../../infra/errors/errors.ts'
import { contentTypes, type FileType, fileRoute, isolation, pageHeaders } from '../../infra/http/pages.ts'

const folder = path.join(import.meta.dirname, 'pages')
const referrer = 'no-referrer'
const headers = { ...pageHeaders({ referrer, caching: 'no-store' }), ...isolation }
const types: Record<string, FileType> = { '.css': 'css', '.js': 'js' }
// Each of its views is an address of the page, but for these.
const noViews = /^\/console\/(?:api|assets)(?:\/|$)/

/** One page at `/console` and everything below it, so that the address of a view works wherever it is opened. */
export async function pageRoutes(app: FastifyInstance): Promise<void> {
  const html = await readFile(path.join(folder, 'index.html'), 'utf8')
  for (const url of ['/console', '/console/*'])
    app.get(url, { schema: { hide: true } }, async (request, reply) => {
      if (noViews.test(request.url.split('?', 1)[0] ?? '')) throw new ApiError('request.not_found')
      return reply.headers(headers).header('content-type', contentTypes.html).send(html)
    })
  for (const file of await readdir(folder)) {
    const type = types[path.extname(file)]
    if (!type) continue
    const body = await readFile(path.join(folder, file), 'utf8')
    fileRoute(
      app,
      { url: `/console/assets/${file}`, type, body },
      { ...headers, 'cache-control': 'no-cache' },
    )
  }
}
