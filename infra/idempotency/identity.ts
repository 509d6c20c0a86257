import type { FastifyRequest } from 'fastify'
import { ApiError, invalidField } from '../errors/errors.ts'
import { sortedMembers } from '../text.ts'

const headerName = 'Idempotency-Key'
const details = { header_name: headerName }

/** undefined without the header. 422 for anything but 1-255 printable ASCII characters. */
export function idempotencyKeyOf({ headers }: FastifyRequest): string | undefined {
  const value = headers['idempotency-key']
  if (value === undefined) return undefined
  if (typeof value === 'string' && /^[\x20-\x7e]{1,255}$/.test(value)) return value
  throw invalidField(
    { name: headerName, issue: 'invalid', expected: '1-255 printable ASCII characters' },
    details,
  )
}

export function keyReused(): ApiError {
  const expected = 'the method, path and body that it first came with, or another key'
  return invalidField({ name: headerName, issue: 'reused', expected }, details)
}

/**
 * Method, path without query, and the body whatever the order of its fields. Where the route takes no body, `{}` is
 * none.
 */
export function requestText({ method, url, body, routeOptions }: FastifyRequest): string {
  const sent = !routeOptions.schema?.body && isEmptyObject(body) ? undefined : body
  return JSON.stringify([method, url.split('?', 1)[0], sortedMembers(sent)])
}

function isEmptyObject(value: unknown): boolean {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject && Object.keys(value).length === 0
}

export function inFlight(): ApiError {
  return new ApiError('request.conflict', {
    message: 'The first request with this Idempotency-Key is still under way.',
    details: { ...details, next_action: 'retry' },
    headers: { 'retry-after': '1' },
    retryable: true,
  })
}
