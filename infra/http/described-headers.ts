const whole = { type: 'integer' }

/** For `components.headers` of the document. */
export const headerComponents = {
  RequestId: {
    description: 'The id of this request, also in the body; quote it when you ask for help.',
    required: true,
    schema: { type: 'string', pattern: '^req_[0-9a-f]{32}$' },
  },
  RateLimit: { description: 'Units that the bucket holds when full.', schema: { ...whole, minimum: 1 } },
  RateLimitRemaining: { description: 'Units left in the bucket.', schema: { ...whole, minimum: 0 } },
  RateLimitCost: { description: 'Units that this request took.', schema: { ...whole, minimum: 1 } },
  RetryAfter: { description: 'Seconds to wait before the same request.', schema: { ...whole, minimum: 1 } },
  Authenticate: { required: true, schema: { const: 'Bearer' } },
  IdempotentReplayed: {
    description:
      'Present when this is the stored answer of an earlier request with the same Idempotency-Key.',
    schema: { const: 'true' },
  },
} as const

/** A `$ref` to one of them. */
export const reference = (name: keyof typeof headerComponents) => ({ $ref: `#/components/headers/${name}` })
export const requestId = { 'X-Request-Id': reference('RequestId') }
export const rateLimit = {
  'X-RateLimit-Limit': reference('RateLimit'),
  'X-RateLimit-Remaining': reference('RateLimitRemaining'),
  'X-RateLimit-Cost': reference('RateLimitCost'),
}
export const retryAfter = { 'Retry-After': reference('RetryAfter') }
