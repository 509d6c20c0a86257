import type { preValidationAsyncHookHandler } from 'fastify'
import { z } from 'zod'
import { invalidField } from '../errors/errors.ts'
import type { CursorQuery, Cursors, Position } from './cursor.ts'

const defaultLimit = 50
const digits = /^\d{1,9}$/

/** `limit` and `cursor`, as every list takes them. Parameters that a list does not know are ignored. */
export const pageQuery = {
  limit: z
    .preprocess(
      (value) => (typeof value === 'string' && digits.test(value) ? Number(value) : value),
      // The description would lack the default, which stands outside of the reading from text.
      z.int().min(1).max(200).meta({ default: defaultLimit }),
    )
    .default(defaultLimit),
  cursor: z.string().optional().describe('next_cursor of the page before.'),
}

/** Refuses `offset`, saying what is expected instead: ignoring it would answer the first page over and over. */
export function refusingOffset(expected: string): preValidationAsyncHookHandler {
  return async ({ query }) => {
    if (typeof query !== 'object' || query === null || !('offset' in query)) return
    throw invalidField({ name: 'offset', issue: 'not_allowed', expected })
  }
}

/** For lists that page by cursor. */
export const refuseOffset = refusingOffset('cursor')

interface PageOptions<Row> {
  limit: number
  cursor: string | undefined
  query: CursorQuery
  cursors: Cursors
  /** Up to `limit` rows after the position, and whether more follow. */
  load: (after: Position | undefined) => Promise<{ rows: Row[]; hasMore: boolean }>
  positionOf: (row: Row) => Position
}

/** Loads one page from where its cursor says, with the pagination object to answer beside it. */
export async function loadPage<Row>(options: PageOptions<Row>) {
  const { limit, cursor, query, cursors, load, positionOf } = options
  const after = cursor === undefined ? undefined : cursors.decode(cursor, query)
  const { rows, hasMore } = await load(after)
  const last = rows.at(-1)
  const next = hasMore && last ? { next_cursor: cursors.encode(positionOf(last), query) } : {}
  return { rows, pagination: { limit, has_more: hasMore, ...next } }
}
