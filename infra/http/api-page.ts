import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { type FileType, isolation, madeOnceRoute, pageHeaders } from './pages.ts'

// Its plugin would send each file anew from the disk, without headers of ours.
const folder = path.join(import.meta.dirname, '../../node_modules/@fastify/swagger-ui/static')

const files: [name: string, type: FileType][] = [
  ['index.css', 'css'],
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
  for (const [name, type] of files)
    madeOnceRoute(
      app,
      { url: `/docs/api/static/${name}`, type, make: () => readFile(path.join(folder, name)) },
      headers,
    )
}

// Addresses are relative, since a proxy may have the server below a path.
const page = (at: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Tidegate API</title>
<link rel="stylesheet" href="${at}/swagger-ui.css">
<link rel="stylesheet" href="${at}/index.css">
<link rel="icon" type="image/png" href="${at}/favicon-32x32.png" sizes="32x32">
</head>
<body>
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
})
`
