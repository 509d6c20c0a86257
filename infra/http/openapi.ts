import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod'
import { errorTable } from './errors.ts'

/** The version of the interface, not of the program. */
export const interfaceVersion = '2026-03-25'

/** `/openapi.json` (OpenAPI 3.1) made from the routes' schemas, and `/docs` to read it. Await before adding routes. */
export async function openapiRoutes(
  app: FastifyInstance,
  { publicUrl }: { publicUrl: string },
): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Tidegate API', version: interfaceVersion },
      servers: [{ url: publicUrl }],
      components: {
        securitySchemes: {
          secretKey: { type: 'http', scheme: 'bearer', description: 'A secret key, sk_live_ or sk_test_.' },
          publishableKey: {
            type: 'http',
            scheme: 'bearer',
            description: 'A publishable key, pk_live_ or pk_test_.',
          },
        },
      },
    },
    transform: jsonSchemaTransform,
    transformObject: (document) => withoutUnused(jsonSchemaTransformObject(document)),
  })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    // The bar on top shows another product's name and an address that /openapi.json makes needless.
    theme: {
      title: 'Tidegate API',
      css: [{ filename: 'tidegate.css', content: '.swagger-ui .topbar { display: none }' }],
    },
  })
  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger())
  const page = errorReference()
  app.get('/docs/errors', { schema: { hide: true } }, (_, reply) =>
    reply.type('text/html; charset=utf-8').send(page),
  )
}

/** Every registered schema is listed once for input and once for output; keeps those that something refers to. */
function withoutUnused<T extends object>(document: T): T {
  if (!('components' in document) || !isRecord(document.components)) return document
  const { schemas: all, ...components } = document.components
  if (!isRecord(all)) return document
  const used = new Set<string>()
  const visit = (value: unknown) => {
    for (const [, name] of JSON.stringify(value).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (!name || used.has(name)) continue
      used.add(name)
      visit(all[name])
    }
  }
  visit({ ...document, components })
  const schemas = Object.fromEntries(Object.entries(all).filter(([name]) => used.has(name)))
  return { ...document, components: { ...components, schemas } }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** The page that every error's docs_url leads into. */
function errorReference(): string {
  const rows = Object.entries(errorTable).map(
    ([code, { status, retryable, message }]) =>
      `<tr id="${code}"><td><code>${code}</code></td><td>${status}</td><td>${retryable ? 'yes' : 'no'}</td><td>${message}</td></tr>`,
  )
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Tidegate API errors</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } td, th { text-align: left; padding: .4rem .8rem; border-bottom: 1px solid #ddd }
tr:target { background: #fff3bf }
</style></head><body>
<h1>Tidegate API errors</h1>
<p>Every failure has the body <code>{ "error": { "code", "message", "status", "retryable", "request_id", "docs_url", "details"? } }</code>.
Quote <code>request_id</code> (also the header <code>X-Request-Id</code>) when you ask for help.</p>
<table><thead><tr><th>Code</th><th>Status</th><th>Retry the same request?</th><th>Meaning</th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody></table></body></html>
`
}
