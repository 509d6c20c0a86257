import { z } from 'zod'
import type { KeyAccess } from '../access/principal.ts'
import { type ErrorCode, type ErrorEntry, errorCodes, errorTable } from '../errors/error-table.ts'
import { errorEnvelopeSchema } from './schemas.ts'

const parameter = z.looseObject({ in: z.string().optional(), name: z.string().optional() })
const response = z.looseObject({
  description: z.string(),
  headers: z.record(z.string(), z.unknown()).optional(),
  content: z.record(z.string(), z.unknown()).optional(),
})
const operation = z.looseObject({
  operationId: z.string().optional(),
  security: z.array(z.record(z.string(), z.array(z.string()))).optional(),
  parameters: z.array(parameter).optional(),
  requestBody: z.unknown().optional(),
  responses: z.record(z.string(), response),
})
type Operation = z.output<typeof operation>

/** Marks a POST that takes an Idempotency-Key. It is removed from the document. */
export const idempotentMark = 'x-idempotent'

const pathsSchema = z.record(z.string(), z.record(z.string(), operation))
type Paths = z.output<typeof pathsSchema>

const idempotencyKeyParameter = {
  in: 'header',
  name: 'Idempotency-Key',
  required: false,
  description:
    'Makes the request safe to repeat for 24 hours: a repetition with the same key and body gets the first answer. Its body is the same byte for byte, so `meta.request_id` names the request that was answered first; the header `X-Request-Id` names the repetition.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]+$' },
}

/** Adds to each operation what the server does on all of them: errors, headers, Idempotency-Key. */
export function completePaths(paths: unknown): Paths {
  const byPath = Object.entries(pathsSchema.parse(paths)).map(([path, methods]) => [
    path,
    Object.fromEntries(
      Object.entries(methods).map(([method, one]) => [method, completeOperation(method, one)]),
    ),
  ])
  return Object.fromEntries(byPath)
}

function completeOperation(
  method: string,
  { [idempotentMark]: mark, ...one }: Operation,
): Operation {
  const opensWith = openerOf(one)
  const makes = '201' in one.responses || '202' in one.responses
  const creates = mark === true || (isKey(opensWith) && method === 'post' && makes)
  const ownOrganization = one['x-own-organization'] === true
  const traits = { method, opensWith, creates, ownOrganization, operationId: one.operationId ?? '' }
  const parameters = [...(one.parameters ?? []), ...(creates ? [idempotencyKeyParameter] : [])]
  const responses = Object.entries({ ...errorsOf(one, traits), ...one.responses })
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([status, response]) => [status, describeResponse(response, { ...traits, status })])
  return {
    ...one,
    ...(parameters.length > 0 && { parameters }),
    responses: Object.fromEntries(responses),
  }
}

const openers = {
  secretKey: 'secret',
  publishableKey: 'publishable',
  pollToken: 'token',
  agentToken: 'token',
} as const

function openerOf({ security }: Operation): Opener | undefined {
  const [scheme] = Object.keys(security?.[0] ?? {})
  const known = Object.entries(openers).find(([name]) => name === scheme)
  return known?.[1]
}

type Opener = KeyAccess['keyType'] | 'token'
const isKey = (opener: Opener | undefined) => opener === 'secret' || opener === 'publishable'

interface Traits {
  method: string
  operationId: string
  opensWith: Opener | undefined
  ownOrganization: boolean
  creates: boolean
}

const envelope = { $ref: `#/components/schemas/${errorEnvelopeSchema.meta()?.id}` }

// The application answers with these statuses, whatever the route does.
function errorsOf(
  { requestBody }: Operation,
  { method, opensWith, creates }: Traits,
): Operation['responses'] {
  const statuses = [
    400,
    431,
    // A body is read where none is described, too.
    ...(method === 'get' ? [] : [413, 415]),
    ...(requestBody ? [422] : []),
    ...(isKey(opensWith) ? [401, 403, 429] : []),
    ...(opensWith === 'token' ? [401, 429] : []),
    ...(creates ? [409, 422] : []),
    500,
    503,
  ]
  const content = { 'application/json': { schema: envelope } }
  return Object.fromEntries(
    statuses.map((status) => [status, { description: 'Default Response', content }]),
  )
}

function describeResponse(
  response: Operation['responses'][string],
  traits: Traits & { status: string },
) {
  const { status } = traits
  const description =
    response.description === 'Default Response'
      ? describeStatus(status, traits)
      : response.description
  return { ...response, description, headers: { ...response.headers, ...headersOf(traits) } }
}

function headersOf({ status, opensWith, creates }: Traits & { status: string }) {
  const waits = status === '429' || status === '503' || (creates && status === '409')
  return {
    ...requestIdHeader,
    ...(isKey(opensWith) && status !== '401' && rateLimit),
    ...(waits && retryAfter),
    ...(status === '401' && { 'WWW-Authenticate': reference('Authenticate') }),
    ...(status === '415' && { 'Accept-Encoding': reference('AcceptEncoding') }),
    ...(creates && /^2/.test(status) && { 'Idempotent-Replayed': reference('IdempotentReplayed') }),
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
  const possible = errorCodes.filter((code) => String(statusOn(code, traits)) === status)
  if (possible.length === 0) return successes[status] ?? status
  return possible.map((code) => `\`${code}\`: ${errorTable[code].meaning}`).join('\n\n')
}

// undefined where the operation does not answer with the code.
function statusOn(code: ErrorCode, traits: Traits): number | undefined {
  const { status, operations }: ErrorEntry = errorTable[code]
  if (operations) return operations[traits.operationId]
  return neverOn(traits).some((prefix) => code.startsWith(prefix)) ? undefined : status
}

const ofCollect = ['session.', 'transport.']
const keyOnly = ['auth.secret_key', 'auth.native', 'auth.insufficient', 'auth.organization']
const ofKeys = [...keyOnly, 'rate_limit.']

// Without a key, and limited by source in the same words as what has one.
const limitedBySource = ['pingCollect', 'reportNetworkCheck']

// Prefixes of codes that an operation for this type of key, or for none, does not answer with.
function neverOn({ operationId, opensWith, ownOrganization }: Traits): string[] {
  if (opensWith === 'publishable')
    return ['auth.secret_key_r', 'auth.insufficient', 'auth.organization_access']
  if (opensWith === 'token') return [...ofKeys, ...ofCollect, 'auth.origin']
  if (limitedBySource.includes(operationId)) return [...keyOnly, ...ofCollect]
  if (opensWith === undefined) return [...ofKeys, ...ofCollect]
  const foreign = ['auth.secret_key_not', 'auth.origin', ...ofCollect]
  return ownOrganization ? foreign : [...foreign, 'auth.organization_access']
}

const whole = { type: 'integer' }

export const headerComponents = {
  RequestId: {
    description:
      'The id of this request; quote it when you ask for help. The body has it, too, unless it is a stored answer, which names the request that it was made for.',
    required: true,
    schema: { type: 'string', pattern: '^req_[0-9a-f]{32}$' },
  },
  RateLimit: {
    description: 'Units that the bucket holds when full.',
    schema: { ...whole, minimum: 1 },
  },
  RateLimitRemaining: {
    description: 'Units left in the bucket.',
    schema: { ...whole, minimum: 0 },
  },
  RateLimitCost: { description: 'Units that this request took.', schema: { ...whole, minimum: 1 } },
  RetryAfter: {
    description: 'Seconds to wait before the same request.',
    schema: { ...whole, minimum: 1 },
  },
  AcceptEncoding: {
    description: 'Present when the body was refused for its Content-Encoding.',
    schema: { const: 'identity' },
  },
  Authenticate: { required: true, schema: { const: 'Bearer' } },
  IdempotentReplayed: {
    description:
      'Present when this is the stored answer of an earlier request with the same Idempotency-Key, whose id is in the body.',
    schema: { const: 'true' },
  },
} as const

const reference = (name: keyof typeof headerComponents) => ({
  $ref: `#/components/headers/${name}`,
})
const requestIdHeader = { 'X-Request-Id': reference('RequestId') }
const rateLimit = {
  'X-RateLimit-Limit': reference('RateLimit'),
  'X-RateLimit-Remaining': reference('RateLimitRemaining'),
  'X-RateLimit-Cost': reference('RateLimitCost'),
}
const retryAfter = { 'Retry-After': reference('RetryAfter') }
