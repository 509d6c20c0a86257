import swagger from '@fastify/swagger'
import type { FastifyInstance, RouteOptions } from 'fastify'
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { type Access, accessOf } from '../access/principal.ts'
import { apiOverview, apiTags } from './api-overview.ts'
import { errorReferenceRoute } from './error-reference.ts'
import { completePaths, headerComponents, idempotentMark } from './operations.ts'
import { cachedFileRoute } from './pages.ts'

const interfaceVersion = '2026-03-25'

const securitySchemes = {
  secretKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'Secret key, `sk_live_...` or `sk_test_...`.',
  },
  pollToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'Poll token of a Gate session, `gtpoll_...`.',
  },
  agentToken: { type: 'http', scheme: 'bearer', description: 'Agent token, `agt_...`.' },
  publishableKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'Publishable key, `pk_live_...` or `pk_test_...`.',
  },
} as const

declare module 'fastify' {
  interface FastifyInstance {
    /** Adds an entry to `webhooks` in the OpenAPI document. Call once per type, before the server is ready. */
    describeWebhook(webhook: DescribedWebhook): void
  }
}

/**
 * Adds `/openapi.json` (OpenAPI 3.1), generated from the routes' schemas, and `/docs/errors`. Await before adding
 * routes.
 */
export async function openapiRoutes(
  app: FastifyInstance,
  { publicUrl }: { publicUrl: string },
): Promise<void> {
  const webhooks: DescribedWebhook[] = []
  app.decorate('describeWebhook', (webhook: DescribedWebhook) => void webhooks.push(webhook))
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Tidegate API', version: interfaceVersion, description: apiOverview },
      servers: [{ url: publicUrl }],
      tags: [...apiTags],
      components: { securitySchemes },
    },
    transform: ({ route, ...document }) => {
      const described = jsonSchemaTransform({ route, ...document })
      return { ...described, schema: { ...described.schema, ...accessExtensions(route) } }
    },
    transformObject: (document) => completeDocument(jsonSchemaTransformObject(document), webhooks),
  })
  const make = () => JSON.stringify(app.swagger())
  cachedFileRoute(app, { url: '/openapi.json', type: 'json', schema: documentSchema, make })
  errorReferenceRoute(app)
}

const documentSchema = {
  operationId: 'getDescription',
  tags: ['Operations'],
  summary: 'Get the OpenAPI document',
  response: { 200: z.looseObject({ openapi: z.string() }), 304: z.null() },
}

// Returns the access that the route's hooks enforce, which overrides its schema.
function accessExtensions(route: Pick<RouteOptions, 'onRequest' | 'config'>) {
  const mark = route.config?.idempotent && { [idempotentMark]: true }
  return { ...mark, ...securityOf(accessOf(route)) }
}

function securityOf(access: Access | undefined) {
  if (!access) return { security: [] }
  if ('token' in access) return { security: [{ [`${access.token}Token`]: [] }] }
  return {
    security: [{ [`${access.keyType}Key`]: [] }],
    ...(access.scope && { 'x-required-scope': access.scope }),
    ...(access.ownOrganization && { 'x-own-organization': true }),
  }
}

function completeDocument<T extends object>(document: T, described: DescribedWebhook[]): T {
  if (!('components' in document && 'paths' in document) || !isRecord(document.components))
    return document
  const components = { ...document.components, headers: headerComponents }
  const items = described.map((webhook) => [webhook.type, { post: operationOf(webhook) }])
  const webhooks = described.length > 0 && { webhooks: Object.fromEntries(items) }
  return withoutUnused({
    ...document,
    paths: completePaths(document.paths),
    ...webhooks,
    components,
  })
}

// Removes unreferenced schemas: every registered schema is listed once for input and once for output.
function withoutUnused<T extends { components: Record<string, unknown> }>(document: T): T {
  const { schemas: registered, ...components } = document.components
  if (!isRecord(registered)) return document
  const used = new Set<string>()
  const visit = (value: unknown) => {
    for (const [, name] of JSON.stringify(value).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (!name || used.has(name)) continue
      used.add(name)
      visit(registered[name])
    }
  }
  visit({ ...document, components })
  const schemas = Object.fromEntries(Object.entries(registered).filter(([name]) => used.has(name)))
  return { ...document, components: { ...components, schemas } }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

export interface DescribedWebhook {
  type: string
  operationId: string
  tag: string
  summary: string
  description: string
  headers: Record<string, DescribedHeader>
  /** Must have an id, the component's name. */
  body: z.ZodType
  responses: Record<
    string,
    { description: string; headers?: Record<string, DescribedHeader>; body?: z.ZodType }
  >
}

export interface DescribedHeader {
  description: string
  schema: Record<string, unknown>
}

function operationOf({
  operationId,
  tag,
  summary,
  description,
  headers,
  body,
  responses,
}: DescribedWebhook) {
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    parameters: Object.entries(headers).map(([name, header]) => ({
      name,
      in: 'header',
      required: true,
      ...header,
    })),
    requestBody: { required: true, content: contentOf(body) },
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, { body: response, ...described }]) => [
        status,
        { ...described, ...(response && { content: contentOf(response) }) },
      ]),
    ),
  }
}

const contentOf = (body: z.ZodType) => ({ 'application/json': { schema: componentOf(body) } })

function componentOf(body: z.ZodType): { $ref: string } {
  const id = body.meta()?.id
  if (!id) throw new Error('the body of a webhook must be a component')
  return { $ref: `#/components/schemas/${id}` }
}
