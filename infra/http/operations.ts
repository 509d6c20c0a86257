import { z } from 'zod'
import type { KeyAccess } from './access.ts'
import { rateLimit, reference, requestId, retryAfter } from './described-headers.ts'
import { errorCodes, errorTable } from './error-table.ts'
import { errorEnvelopeSchema } from './schemas.ts'

const parameter = z.looseObject({ in: z.string().optional(), name: z.string().optional() })
const response = z.looseObject({
  description: z.string(),
  headers: z.record(z.string(), z.unknown()).optional(),
  content: z.record(z.string(), z.unknown()).optional(),
})
const operation = z.looseObject({
  security: z.array(z.record(z.string(), z.array(z.string()))).optional(),
  parameters: z.array(parameter).optional(),
  requestBody: z.unknown().optional(),
  responses: z.record(z.string(), response),
})
type Operation = z.output<typeof operation>

/** The paths of an OpenAPI document. */
export const pathsSchema = z.record(z.string(), z.record(z.string(), operation))
type Paths = z.output<typeof pathsSchema>

export const idempotencyKeyParameter = {
  in: 'header',
  name: 'Idempotency-Key',
  required: false,
  description:
    'Makes the request safe to repeat for 24 hours: a repetition with the same key and body gets the first answer.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

/** Adds to each operation what the server does alike on all of them: errors, headers, Idempotency-Key. */
export function completePaths(paths: unknown): Paths {
  const byPath = Object.entries(pathsSchema.parse(paths)).map(([path, methods]) => [
    path,
    Object.fromEntries(
      Object.entries(methods).map(([method, one]) => [method, completeOperation(method, one)]),
    ),
  ])
  return Object.fromEntries(byPath)
}

function completeOperation(method: string, one: Operation): Operation {
  const keyType = keyTypeOf(one)
  const makes = '201' in one.responses || '202' in one.responses
  const creates = keyType !== undefined && method === 'post' && makes
  const traits = { keyType, creates, ownOrganization: one['x-own-organization'] === true }
  const parameters = [...(one.parameters ?? []), ...(creates ? [idempotencyKeyParameter] : [])]
  const responses = Object.entries({ ...errorsOf(one, traits), ...one.responses })
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([status, given]) => [status, describeResponse(given, { ...traits, status })])
  return { ...one, ...(parameters.length > 0 && { parameters }), responses: Object.fromEntries(responses) }
}

function keyTypeOf({ security }: Operation): KeyAccess['keyType'] | undefined {
  const [scheme] = Object.keys(security?.[0] ?? {})
  if (scheme === 'secretKey') return 'secret'
  return scheme === 'publishableKey' ? 'publishable' : undefined
}

interface Traits {
  keyType: KeyAccess['keyType'] | undefined
  ownOrganization: boolean
  /** A POST that makes something takes an Idempotency-Key. */
  creates: boolean
}

const envelope = { $ref: `#/components/schemas/${errorEnvelopeSchema.meta()?.id}` }

/** Statuses that the edge answers with, whatever the route does. */
function errorsOf({ requestBody }: Operation, { keyType, creates }: Traits): Operation['responses'] {
  const statuses = [
    ...(requestBody ? [400, 413, 415] : []),
    ...(keyType ? [401, 403, 429] : []),
    ...(creates ? [409, 422] : []),
    500,
    503,
  ]
  const content = { 'application/json': { schema: envelope } }
  return Object.fromEntries(statuses.map((status) => [status, { description: 'Default Response', content }]))
}

function describeResponse(given: Operation['responses'][string], traits: Traits & { status: string }) {
  const { status } = traits
  const description =
    given.description === 'Default Response' ? describeStatus(status, traits) : given.description
  return { ...given, description, headers: { ...given.headers, ...headersOf(traits) } }
}

function headersOf({ status, keyType, creates }: Traits & { status: string }) {
  const waits = status === '429' || status === '503' || (creates && status === '409')
  return {
    ...requestId,
    ...(keyType && status !== '401' && rateLimit),
    ...(waits && retryAfter),
    ...(status === '401' && { 'WWW-Authenticate': reference('Authenticate') }),
    ...(creates && /^20[12]$/.test(status) && { 'Idempotent-Replayed': reference('IdempotentReplayed') }),
  }
}

const successes: Record<string, string> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'No content',
  304: 'Not modified',
}

function describeStatus(status: string, traits: Traits): string {
  const codes = errorCodes.filter((code) => String(errorTable[code].status) === status)
  const possible = codes.filter((code) => !neverOn(traits).some((prefix) => code.startsWith(prefix)))
  if (possible.length === 0) return successes[status] ?? status
  return possible.map((code) => `\`${code}\`: ${errorTable[code].meaning}`).join('\n\n')
}

/** Starts of codes that an endpoint for this type of key does not answer with. */
function neverOn({ keyType, ownOrganization }: Traits): string[] {
  if (keyType === 'publishable') return ['auth.secret_key_r', 'auth.insufficient', 'auth.organization_access']
  const foreign = ['auth.secret_key_not', 'auth.origin', 'session.', 'transport.']
  return ownOrganization ? foreign : [...foreign, 'auth.organization_access']
}
