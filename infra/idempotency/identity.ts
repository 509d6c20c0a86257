import type { FastifyRequest } from 'fastify'
import { ApiError, invalidField } from '../errors/errors.ts'
import { sortMembers } from '../text.ts'

const headerName = 'Idempotency-Key'
const details = { header_name: headerName }

/** Returns the Idempotency-Key, if any. Throws 422 unless it is 1-255 printable ASCII characters. */
export function idempotencyKeyOf({ headers }: FastifyRequest): string | undefined {
  const value = headers['idempotency-key']
  if (value === undefined) return undefined
  if (typeof value === 'string' && /^[\x20-\x7e]{1,255}$/.test(value)) return value
  throw invalidField(
    { name: headerName, issue: 'invalid', expected: '1-255 printable ASCII characters' },
    details,
  )
}

export function keyReusedError(): ApiError {
  const expected = 'the method, path and body that it first came with, or another key'
  return invalidField({ name: headerName, issue: 'reused', expected }, details)
}

/**
 * Returns the text that identifies a request: method, path without query, and the body with sorted members. If the
 * route takes no body, `{}` counts as none.
 */
export function requestText({ method, url, body, routeOptions }: FastifyRequest): string {
  const content = !routeOptions.schema?.body && isEmptyObject(body) ? undefined : body
  return JSON.stringify([method, url.split('?', 1)[0], sortMembers(content)])
}

function isEmptyObject(value: unknown): boolean {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject && Object.keys(value).length === 0
}

export function inFlightError(): ApiError {
  return new ApiError('request.conflict', {
    message: 'The first request with this Idempotency-Key is still under way.',
    details: { ...details, next_action: 'retry' },
    headers: { 'retry-after': '1' },
    retryable: true,
  })
}
