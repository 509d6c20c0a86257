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

/** Marks a POST that takes an Idempotency-Key. Removed from the final document. */
export const idempotentMark = 'x-idempotent'

const pathsSchema = z.record(z.string(), z.record(z.string(), operation))
type Paths = z.output<typeof pathsSchema>

const idempotencyKeyParameter = {
  in: 'header',
  name: 'Idempotency-Key',
  required: false,
  description:
    'Makes the request safe to retry for 24 hours: a repeat with the same key and body returns the first response. The body is identical, so its `meta.request_id` is that of the first request; the header `X-Request-Id` is that of the repeat.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]+$' },
}

/** Adds to every operation the errors, headers and Idempotency-Key that its route doesn't declare. */
export function completePaths(paths: unknown): Paths {
  const byPath = Object.entries(pathsSchema.parse(paths)).map(([path, methods]) => [
    path,
    Object.fromEntries(
      Object.entries(methods).map(([method, item]) => [method, completeOperation(method, item)]),
    ),
  ])
  return Object.fromEntries(byPath)
}

function completeOperation(
  method: string,
  { [idempotentMark]: mark, ...described }: Operation,
): Operation {
  const { operationId = '', parameters: ownParameters = [] } = described
  const credential = credentialOf(described)
  const returnsCreated = '201' in described.responses || '202' in described.responses
  const idempotent = mark === true || (isKey(credential) && method === 'post' && returnsCreated)
  const ownOrganization = described['x-own-organization'] === true
  const traits = { method, credential, idempotent, ownOrganization, operationId }
  const parameters = [...ownParameters, ...(idempotent ? [idempotencyKeyParameter] : [])]
  const responses = Object.entries({ ...errorsOf(described, traits), ...described.responses })
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([status, response]) => [status, describeResponse(response, { ...traits, status })])
  return {
    ...described,
    ...(parameters.length > 0 && { parameters }),
    responses: Object.fromEntries(responses),
  }
}

const credentials = {
  secretKey: 'secret',
  publishableKey: 'publishable',
  pollToken: 'token',
  agentToken: 'token',
} as const

function credentialOf({ security }: Operation): Credential | undefined {
  const [scheme] = Object.keys(security?.[0] ?? {})
  return Object.entries(credentials).find(([name]) => name === scheme)?.[1]
}

type Credential = KeyAccess['keyType'] | 'token'
const isKey = (credential?: Credential) => credential === 'secret' || credential === 'publishable'

interface Traits {
  method: string
  operationId: string
  credential: Credential | undefined
  ownOrganization: boolean
  idempotent: boolean
}

const envelope = { $ref: `#/components/schemas/${errorEnvelopeSchema.meta()?.id}` }

// Returns the error responses that the app sends on every route.
function errorsOf(
  { requestBody }: Operation,
  { method, credential, idempotent }: Traits,
): Operation['responses'] {
  const statuses = [
    400,
    431,
    // Bodies are read even on routes that declare none.
    ...(method === 'get' ? [] : [413, 415]),
    ...(requestBody ? [422] : []),
    ...(isKey(credential) ? [401, 403, 429] : []),
    ...(credential === 'token' ? [401, 429] : []),
    ...(idempotent ? [409, 422] : []),
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

function headersOf({ status, credential, idempotent }: Traits & { status: string }) {
  const isRetryable = status === '429' || status === '503' || (idempotent && status === '409')
  return {
    ...requestIdHeader,
    ...(isKey(credential) && status !== '401' && rateLimit),
    ...(isRetryable && retryAfter),
    ...(status === '401' && { 'WWW-Authenticate': reference('Authenticate') }),
    ...(status === '415' && { 'Accept-Encoding': reference('AcceptEncoding') }),
    ...(idempotent &&
      /^2/.test(status) && { 'Idempotent-Replayed': reference('IdempotentReplayed') }),
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
  const possible = errorCodes.filter((code) => String(statusFor(code, traits)) === status)
  if (possible.length === 0) return successes[status] ?? status
  return possible.map((code) => `\`${code}\`: ${errorTable[code].meaning}`).join('\n\n')
}

// Returns undefined if the operation never returns the code.
function statusFor(code: ErrorCode, traits: Traits): number | undefined {
  const { status, operations }: ErrorEntry = errorTable[code]
  if (operations) return operations[traits.operationId]
  return excludedPrefixes(traits).some((prefix) => code.startsWith(prefix)) ? undefined : status
}

const collectOnly = ['session.', 'transport.']
const keyOnly = ['auth.secret_key', 'auth.native', 'auth.insufficient', 'auth.organization']
const anyKeyOnly = [...keyOnly, 'rate_limit.']

// Operations without a key that return `rate_limit.exceeded` per source address.
const limitedBySource = ['pingCollect', 'reportNetworkCheck']

// Returns prefixes of codes that an operation with this credential never returns.
function excludedPrefixes({ operationId, credential, ownOrganization }: Traits): string[] {
  if (credential === 'publishable')
    return ['auth.secret_key_r', 'auth.insufficient', 'auth.organization_access']
  if (credential === 'token') return [...anyKeyOnly, ...collectOnly, 'auth.origin']
  if (limitedBySource.includes(operationId)) return [...keyOnly, ...collectOnly]
  if (credential === undefined) return [...anyKeyOnly, ...collectOnly]
  const foreign = ['auth.secret_key_not', 'auth.origin', ...collectOnly]
  return ownOrganization ? foreign : [...foreign, 'auth.organization_access']
}

const int = { type: 'integer' }

export const headerComponents = {
  RequestId: {
    description:
      'Id of this request; quote it when you ask for help. The body has the same id, unless it is a stored response: then it has the id of the first request.',
    required: true,
    schema: { type: 'string', pattern: '^req_[0-9a-f]{32}$' },
  },
  RateLimit: {
    description: 'Capacity of the rate limit in units.',
    schema: { ...int, minimum: 1 },
  },
  RateLimitRemaining: {
    description: 'Units that are left.',
    schema: { ...int, minimum: 0 },
  },
  RateLimitCost: { description: 'Units that this request cost.', schema: { ...int, minimum: 1 } },
  RetryAfter: {
    description: 'Seconds to wait before retrying.',
    schema: { ...int, minimum: 1 },
  },
  AcceptEncoding: {
    description: 'Present if the body was refused because of its `Content-Encoding`.',
    schema: { const: 'identity' },
  },
  Authenticate: { required: true, schema: { const: 'Bearer' } },
  IdempotentReplayed: {
    description:
      'Present if this is the stored response to an earlier request with the same `Idempotency-Key`. The body has the id of that request.',
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
