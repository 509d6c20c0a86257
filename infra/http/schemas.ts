import { z } from 'zod'
import { errorTable } from '../errors/errors.ts'
import { idPattern } from '../ids.ts'

/** ISO 8601 timestamp in UTC with milliseconds. */
export const timestamp = z.iso.datetime({ precision: 3 })

/** Time in a query, as epoch milliseconds. */
export const queryTime = z.iso
  .datetime({
    offset: true,
    error: ({ code }) =>
      code === 'invalid_format'
        ? 'ISO 8601 with a time zone, such as 2026-11-26T08:00:00Z'
        : undefined,
  })
  .transform((value) => Date.parse(value))

const maxValues = 50

/** Returns a schema for a query parameter that can be repeated, which ORs its values. */
export const repeatable = <T extends z.ZodType>(value: T) =>
  z.preprocess(
    (input) => (input === undefined ? undefined : [input].flat()),
    z.array(value).min(1).max(maxValues).optional(),
  )

export const meta = z
  .strictObject({ request_id: z.string().regex(/^req_[0-9a-f]{32}$/) })
  .meta({ id: 'ResponseMeta' })

const pagination = z
  .strictObject({
    limit: z.int().min(1).max(200),
    has_more: z.boolean(),
    next_cursor: z.string().optional().describe('Absent on the last page.'),
  })
  .meta({ id: 'CursorPagination' })

const fieldIssue = z
  .strictObject({
    name: z.string(),
    issue: z.string(),
    expected: z.string().optional(),
    received: z.union([z.string(), z.number(), z.boolean(), z.null()]).optional(),
  })
  .meta({ id: 'ApiFieldIssue' })

const details = z
  .strictObject({
    fields: z.array(fieldIssue).optional(),
    allowed_values: z.array(z.string()).optional(),
    header_name: z.string().optional(),
    parameter_set: z.string().optional(),
    merged_into: z.string().optional(),
    erasure: z.strictObject({ id: z.string(), erased_at: timestamp }).optional(),
    next_action: z.enum(['retry', 'new_session', 'reload_bundle', 'contact_support']).optional(),
  })
  .meta({ id: 'ApiErrorDetails' })

export const errorEnvelopeSchema = z
  .strictObject({
    error: z.strictObject({
      code: z.string().describe(`One of ${Object.keys(errorTable).join(', ')}.`),
      message: z.string(),
      status: z.int(),
      retryable: z.boolean(),
      request_id: meta.shape.request_id,
      docs_url: z.url(),
      details: details.optional(),
    }),
  })
  .meta({ id: 'ApiErrorEnvelope' })

export const single = <T extends z.ZodType>(data: T) => z.strictObject({ data, meta })

export const list = <T extends z.ZodType>(item: T) =>
  z.strictObject({ data: z.array(item), pagination, meta })

export function errorResponses(...statuses: number[]): Record<number, typeof errorEnvelopeSchema> {
  return Object.fromEntries([...statuses, 500, 503].map((status) => [status, errorEnvelopeSchema]))
}

export function atLeastOne<Shape extends Record<string, z.ZodType>>(shape: Shape) {
  return z
    .strictObject(shape)
    .refine((body) => Object.keys(body).length > 0, {
      error: `at least one of ${Object.keys(shape).join(', ')}`,
      // Skipped after other issues: an invalid member is missing from the parsed body, so the message would be wrong.
      when: ({ issues }) => issues.length === 0,
    })
    .meta({ minProperties: 1 })
}

/**
 * Schema of an id in a path. The pattern is documentation only: a malformed id gets 404 or 403 like any unknown id, not
 * 422.
 */
export const pathId = (prefix: Parameters<typeof idPattern>[0]) =>
  z.string().meta({ pattern: idPattern(prefix) })

/** Schema of an id in a body. A malformed id gets 422. */
export const bodyId = (prefix: Parameters<typeof idPattern>[0]) =>
  z.string().regex(new RegExp(idPattern(prefix)))

/** Returns a JSON Schema with `if` and `then`. An object literal with `then` would look like a promise. */
export const implies = (condition: object, demand: object): Record<string, object> =>
  Object.fromEntries([
    ['if', condition],
    ['then', demand],
  ])

export const organizationParams = z.object({ organizationId: pathId('org') })
