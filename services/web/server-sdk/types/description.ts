import { createHash } from 'node:crypto'
import { z } from 'zod'

const responseSchemas = [
  'ApiErrorDetails',
  'Mark',
  'ScoredRequest',
  'SessionAggregates',
  'SessionDetail',
  'SessionSummary',
  'VisitorFingerprintDetail',
  'VisitorFingerprintSummary',
]
const clientOperations = new Set([
  'listSessions',
  'countSessions',
  'getSession',
  'updateSession',
  'listVisitorFingerprints',
  'getVisitorFingerprint',
  'markSessions',
  'deleteMark',
  'scoreRequests',
])

const operation = z.looseObject({ operationId: z.string() })
const description = z.looseObject({
  info: z.unknown(),
  paths: z.record(z.string(), z.record(z.string(), operation)),
  components: z.looseObject({ schemas: z.record(z.string(), z.unknown()) }),
})

/**
 * Returns the part of `/openapi.json` that `@tidegate/server` has types for: the client's operations and all webhooks.
 */
export function clientDescription(document: unknown) {
  const { info, paths, components } = description.parse(document)
  const clientPaths = Object.entries(paths)
    .sort()
    .map(([path, item]) => [path, clientMethods(item)] as const)
    // Other paths, such as /metrics, depend on the server's settings.
    .filter(([, methods]) => Object.keys(methods).length > 0)
  const webhooks = Object.keys(components.schemas).filter((name) => name.endsWith('WebhookEvent'))
  const names = new Set([...responseSchemas, ...webhooks, ...namesIn(clientPaths)])
  // Iterating a set also visits the names added on the way.
  for (const name of names)
    for (const reference of namesIn(components.schemas[name])) names.add(reference)
  const schemas = Object.fromEntries(
    [...names].sort().map((name) => [name, withoutFormats(components.schemas[name])]),
  )
  return { openapi: '3.1.0', info, paths: Object.fromEntries(clientPaths), components: { schemas } }
}

/** Returns a digest of the description, which identifies it in the generated types. */
export const descriptionDigest = (part: ReturnType<typeof clientDescription>): string =>
  createHash('sha256').update(JSON.stringify(part)).digest('hex').slice(0, 16)

// Keeps only the client's operations, without their responses, because the client refers to response schemas by name.
function clientMethods(item: Record<string, z.output<typeof operation>>) {
  const operations = Object.entries(item).filter(([, endpoint]) =>
    clientOperations.has(endpoint.operationId),
  )
  return Object.fromEntries(
    operations.map(([method, endpoint]) => [method, { ...endpoint, responses: {} }]),
  )
}

/** Returns the names of the schemas that a value refers to. */
function namesIn(value: unknown): string[] {
  const references = JSON.stringify(value ?? null).matchAll(/"#\/components\/schemas\/(\w+)"/g)
  return [...references].map(([, name = '']) => name)
}

// Removes an `anyOf` of formats, such as IPv4 or IPv6, because the generator would type each as `unknown`.
function withoutFormats(schema: unknown): unknown {
  const text = JSON.stringify(schema)
  return JSON.parse(text, (_, value) => {
    const isFormats = Array.isArray(value?.anyOf) && value.anyOf.every(isFormat)
    if (!isFormats) return value
    const { anyOf: _formats, ...rest } = value
    return rest
  })
}

const isFormat = (schema: object) => Object.keys(schema).join() === 'format'
