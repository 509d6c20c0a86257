import { createHash } from 'node:crypto'
import { z } from 'zod'

const answers = [
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

/** Returns the part of `/openapi.json` that `@tidegate/server` has types of: the client's operations and all webhooks. */
export function clientDescription(document: unknown) {
  const { info, paths, components } = description.parse(document)
  const ofClient = Object.entries(paths)
    .sort()
    .map(([path, item]) => [path, ofTheClient(item)])
  const webhooks = Object.keys(components.schemas).filter((name) => name.endsWith('WebhookEvent'))
  const names = new Set([...answers, ...webhooks, ...namesIn(ofClient)])
  // A set is walked on to what is added meanwhile.
  for (const name of names) for (const used of namesIn(components.schemas[name])) names.add(used)
  const schemas = Object.fromEntries(
    [...names].sort().map((name) => [name, withoutFormats(components.schemas[name])]),
  )
  return { openapi: '3.1.0', info, paths: Object.fromEntries(ofClient), components: { schemas } }
}

/** Names the description that types were generated from. */
export const descriptionDigest = (part: ReturnType<typeof clientDescription>): string =>
  createHash('sha256').update(JSON.stringify(part)).digest('hex').slice(0, 16)

// Without responses: the client names the schemas that answers have.
function ofTheClient(item: Record<string, z.output<typeof operation>>) {
  const operations = Object.entries(item).filter(([, one]) => clientOperations.has(one.operationId))
  return Object.fromEntries(operations.map(([method, one]) => [method, { ...one, responses: {} }]))
}

/** Returns the schemas that a value refers to. */
function namesIn(value: unknown): string[] {
  const references = JSON.stringify(value ?? null).matchAll(/"#\/components\/schemas\/(\w+)"/g)
  return [...references].map(([, name = '']) => name)
}

// An address in one of two formats is a string; the generator makes `unknown` of each format.
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
