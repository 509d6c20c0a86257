import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { type FileType, isolation, madeOnceRoute, pageHeaders } from './pages.ts'
import { siteHeader, siteHeaderStyle } from './site-header.ts'
import { tokenStyle } from './theme.ts'

// Its plugin would send each file anew from the disk, without headers of ours.
const folder = path.join(import.meta.dirname, '../../node_modules/@fastify/swagger-ui/static')

const files: [name: string, type: FileType][] = [
  ['swagger-ui.css', 'css'],
  ['swagger-ui-bundle.js', 'js'],
  ['favicon-32x32.png', 'png'],
]

const headers = {
  // The style sheet has its arrows as data: addresses.
  ...pageHeaders({ images: ["'self'", 'data:'], referrer: 'no-referrer', caching: 'no-cache' }),
  ...isolation,
}

/** `/docs/api`: Swagger UI on `/openapi.json`. */
export function apiPageRoutes(app: FastifyInstance): void {
  madeOnceRoute(app, { url: '/docs/api', type: 'html', make: () => page('api/static') }, headers)
  madeOnceRoute(app, { url: '/docs/api/', type: 'html', make: () => page('static') }, headers)
  madeOnceRoute(app, { url: '/docs/api/static/start.js', type: 'js', make: () => start }, headers)
  madeOnceRoute(app, { url: '/docs/api/static/theme.css', type: 'css', make: theme }, headers)
  for (const [name, type] of files)
    madeOnceRoute(
      app,
      { url: `/docs/api/static/${name}`, type, make: () => readFile(path.join(folder, name)) },
      headers,
    )
}

// An import is only one before all rules.
async function theme(): Promise<Buffer> {
  return Buffer.from(
    (await readFile(path.join(import.meta.dirname, 'api-page.css'), 'utf8')) +
      tokenStyle +
      siteHeaderStyle,
  )
}

// Addresses are relative, since a proxy may have the server below a path.
const page = (at: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Tidegate API</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${at}/theme.css">
<link rel="icon" type="image/png" href="${at}/favicon-32x32.png" sizes="32x32">
</head>
<body>
<div class="wrap">${siteHeader({ up: at === 'static' ? '../../' : '../', current: 'api' })}</div>
<div id="swagger-ui"></div>
<script src="${at}/swagger-ui-bundle.js"></script>
<script src="${at}/start.js"></script>
</body>
</html>
`

const start = `SwaggerUIBundle({
  dom_id: '#swagger-ui',
  url: new URL('../../../openapi.json', document.currentScript.src).href,
  deepLinking: true,
  validatorUrl: null,
  syntaxHighlight: { activated: false },
})
`
