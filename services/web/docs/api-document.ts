import { z } from 'zod'

/** The parts of a JSON schema that the reference shows. */
export interface Schema {
  $ref?: string | undefined
  type?: string | string[] | undefined
  description?: string | undefined
  properties?: Record<string, Schema> | undefined
  required?: string[] | undefined
  additionalProperties?: Schema | boolean | undefined
  items?: Schema | undefined
  anyOf?: Schema[] | undefined
  allOf?: Schema[] | undefined
  oneOf?: Schema[] | undefined
  enum?: unknown[] | undefined
  const?: unknown
  format?: string | undefined
  minimum?: number | undefined
  maximum?: number | undefined
  minLength?: number | undefined
  maxLength?: number | undefined
  maxItems?: number | undefined
  default?: unknown
}

const schema: z.ZodType<Schema> = z.lazy(() =>
  z.object({
    $ref: z.string().optional(),
    type: z.union([z.string(), z.array(z.string())]).optional(),
    description: z.string().optional(),
    properties: z.record(z.string(), schema).optional(),
    required: z.array(z.string()).optional(),
    additionalProperties: z.union([z.boolean(), schema]).optional(),
    // Tuples have `false` here.
    items: schema.optional().catch(undefined),
    anyOf: z.array(schema).optional(),
    allOf: z.array(schema).optional(),
    oneOf: z.array(schema).optional(),
    enum: z.array(z.unknown()).optional(),
    const: z.unknown().optional(),
    format: z.string().optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    minLength: z.number().optional(),
    maxLength: z.number().optional(),
    maxItems: z.number().optional(),
    default: z.unknown().optional(),
  }),
)

const content = z.record(z.string(), z.object({ schema: schema.optional() })).optional()

const operation = z.object({
  operationId: z.string(),
  summary: z.string(),
  description: z.string().optional(),
  tags: z.tuple([z.string()]),
  security: z.array(z.record(z.string(), z.unknown())).default([]),
  'x-required-scope': z.string().optional(),
  parameters: z
    .array(
      z.object({
        name: z.string(),
        in: z.enum(['path', 'query', 'header', 'cookie']),
        required: z.boolean().default(false),
        description: z.string().optional(),
        schema: schema.optional(),
      }),
    )
    .default([]),
  requestBody: z.object({ content }).optional(),
  responses: z.record(z.string(), z.object({ description: z.string().default(''), content })),
})

const openapiDocument = z.object({
  info: z.object({ description: z.string() }),
  servers: z.tuple([z.object({ url: z.string() })]),
  tags: z.array(z.object({ name: z.string(), description: z.string() })),
  components: z.object({ schemas: z.record(z.string(), schema) }),
  paths: z.record(z.string(), z.record(z.string(), operation)),
  webhooks: z.record(z.string(), z.object({ post: operation })).default({}),
})

export interface Operation extends z.infer<typeof operation> {
  method: string
  /** Path such as `/v1/sessions/{sessionId}`; for a webhook, the event type. */
  path: string
  isWebhook: boolean
}

/** A page of the reference: the operations of one tag. */
export interface ApiSection {
  /** Last part of the page's URL path. */
  slug: string
  title: string
  description: string
  operations: Operation[]
}

export interface ReferenceDocument {
  overview: string
  serverUrl: string
  sections: ApiSection[]
  schemas: Record<string, Schema>
}

/** Throws if the document lacks something that the reference shows, such as a tag's description. */
export function parseDocument(openapi: unknown): ReferenceDocument {
  const { info, servers, tags, components, paths, webhooks } = openapiDocument.parse(openapi)
  const operations: Operation[] = [
    ...Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, described]) => ({
        ...described,
        method: method.toUpperCase(),
        path,
        isWebhook: false,
      })),
    ),
    ...Object.entries(webhooks).map(([path, { post }]) => ({
      ...post,
      method: 'EVENT',
      path,
      isWebhook: true,
    })),
  ]
  const sections = tags.map(({ name, description }) => ({
    slug: slugOfTag(name),
    title: name,
    description,
    operations: operations.filter(({ tags: [tag] }) => tag === name),
  }))
  return {
    overview: info.description,
    serverUrl: servers[0].url,
    sections,
    schemas: components.schemas,
  }
}

export const slugOfTag = (name: string): string => name.toLowerCase().replaceAll(' ', '-')
