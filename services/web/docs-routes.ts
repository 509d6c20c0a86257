import { glob, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { fileRoute } from '../../infra/http/pages.ts'

const root = path.join(import.meta.dirname, '../..')
// Without the examples, because somebody may have installed packages there.
const pages = ['docs/{guide,operate,reference,reports,internals}/*.md', 'docs/internals/adr/*.md']
const headers = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-cache' }

/** `/llms.txt`, and every page of `docs/` as Markdown under its own path. There is a route for each, and no other. */
export async function docsRoutes(app: FastifyInstance): Promise<void> {
  const index = await readFile(path.join(import.meta.dirname, 'pages/llms.txt'), 'utf8')
  fileRoute(app, { url: '/llms.txt', type: 'text', body: index }, headers)
  for await (const page of glob(pages, { cwd: root })) {
    const body = await readFile(path.join(root, page), 'utf8')
    fileRoute(app, { url: `/${page}`, type: 'markdown', body }, headers)
  }
}
