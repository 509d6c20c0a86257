import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { Keyring } from '../crypto/keyring.ts'
import { invalidField } from '../errors/errors.ts'
import { decodeBase64url } from '../text.ts'

const defaultLimit = 50
const digits = /^\d{1,9}$/

/** Query parameters of every list. Unknown parameters are ignored. */
export const pageQuery = {
  limit: z
    .preprocess(
      (value) => (typeof value === 'string' && digits.test(value) ? Number(value) : value),
      // Repeats the default, which the OpenAPI document would otherwise lack because of `preprocess`.
      z.int().min(1).max(200).meta({ default: defaultLimit }),
    )
    .default(defaultLimit),
  cursor: z
    .string()
    .optional()
    .describe('`next_cursor` of the previous page. Empty: the first page.'),
}

/** Creates a check that throws 422 for `offset`. Ignoring `offset` would return the first page over and over. */
export function createOffsetCheck(expected: string) {
  return async ({ query }: { query: unknown }): Promise<void> => {
    if (typeof query !== 'object' || query === null || !('offset' in query)) return
    throw invalidField({ name: 'offset', issue: 'not_allowed', expected })
  }
}

export const refuseOffset = createOffsetCheck('use cursor')

interface LoadedPage<Row> {
  rows: Row[]
  hasMore: boolean
  /** Position after which the next page starts. Default: that of the last row. */
  next?: PagePosition | undefined
}

interface PageOptions<Row, More> {
  limit: number
  cursor: string | undefined
  query: CursorQuery
  cursors: ReturnType<typeof createCursors>
  /** Returns up to `limit` rows after the position. */
  load: (after: PagePosition | undefined) => Promise<LoadedPage<Row> & More>
  positionOf: (row: Row) => PagePosition
}

/** Loads the page after `cursor` and adds `pagination`. Throws 422 for an invalid cursor. */
export async function loadPage<Row, More>(options: PageOptions<Row, More>) {
  const { limit, cursor, query, cursors, load, positionOf } = options
  const after = cursor ? cursors.decode(cursor, query) : undefined
  const { hasMore, next, ...page } = await load(after)
  const last = page.rows.at(-1)
  const position = next ?? (last && positionOf(last))
  const nextCursor = hasMore && position && { next_cursor: cursors.encode(position, query) }
  return { ...page, pagination: { limit, has_more: hasMore, ...nextCursor } }
}

/** Position of the last row of a page. `value` is the sort key, `id` breaks ties. */
export interface PagePosition {
  value: number
  id: string
  /** Time at which the first page was read (epoch milliseconds), if the list sets it. */
  begunAt?: number | undefined
}

/** The query for which a cursor is valid: list, organization, environment, filters and sort. */
export type CursorQuery = Record<string, string | null>

const tagBytes = 16
const body = z.tuple([z.number(), z.string(), z.number().optional()])

/**
 * A cursor is base64url of `tag 16 bytes | JSON [value, id, begunAt]`. The tag is an HMAC of the JSON and the query:
 * cursors hold no secret, but can't be forged or used for another query.
 */
export function createCursors({ keyring }: { keyring: Keyring }) {
  const tag = (master: Keyring['current'], json: string, query: CursorQuery) =>
    createHmac('sha256', master.derive('cursor'))
      .update(JSON.stringify([json, Object.entries(query).sort()]))
      .digest()
      .subarray(0, tagBytes)

  return {
    encode({ value, id, begunAt }: PagePosition, query: CursorQuery): string {
      const json = JSON.stringify(begunAt === undefined ? [value, id] : [value, id, begunAt])
      return Buffer.concat([tag(keyring.current, json, query), Buffer.from(json)]).toString(
        'base64url',
      )
    },
    /** Returns the position. Throws 422 for anything that `encode` did not create for this query. */
    decode(cursor: string, query: CursorQuery): PagePosition {
      const bytes = decodeBase64url(cursor)
      if (!bytes) throw invalidCursor()
      const sentTag = bytes.subarray(0, tagBytes)
      const json = bytes.toString('utf8', tagBytes)
      const isValid =
        sentTag.length === tagBytes &&
        keyring.all.some((master) => timingSafeEqual(sentTag, tag(master, json, query)))
      if (!isValid) throw invalidCursor()
      const [value, id, begunAt] = body.parse(JSON.parse(json))
      return { value, id, begunAt }
    },
  }
}

function invalidCursor() {
  return invalidField({
    name: 'cursor',
    issue: 'invalid',
    expected: 'the next_cursor of the same query',
  })
}
