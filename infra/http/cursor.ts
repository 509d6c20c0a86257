import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { Keyring } from '../crypto/keyring.ts'
import { invalidField } from '../errors/errors.ts'

/** The last row of a page: what the list is ordered by, then the id that breaks ties. */
export interface Position {
  value: number
  id: string
}

/** What a cursor may be used for: one list of one organization and environment, with one set of filters and sort. */
export type CursorQuery = Record<string, string | null>

const tagBytes = 16
const body = z.tuple([z.number(), z.string()])

/**
 * Cursors as base64url of `tag 16 bytes | JSON [value, id]`, the tag an HMAC over the JSON and the query it belongs
 * to. They hold no secret, but nobody can make one, and one of another query is refused.
 */
export function createCursors({ keyring }: { keyring: Keyring }) {
  const tag = (master: Keyring['current'], json: string, query: CursorQuery) =>
    createHmac('sha256', master.derive('cursor'))
      .update(JSON.stringify([json, Object.entries(query).sort()]))
      .digest()
      .subarray(0, tagBytes)

  return {
    encode({ value, id }: Position, query: CursorQuery): string {
      const json = JSON.stringify([value, id])
      return Buffer.concat([tag(keyring.current, json, query), Buffer.from(json)]).toString('base64url')
    },
    /** Throws 422 for anything that `encode` did not make for this query. */
    decode(cursor: string, query: CursorQuery): Position {
      const bytes = Buffer.from(cursor, 'base64url')
      const given = bytes.subarray(0, tagBytes)
      const json = bytes.toString('utf8', tagBytes)
      const ours =
        given.length === tagBytes &&
        keyring.all.some((master) => timingSafeEqual(given, tag(master, json, query)))
      if (!ours || bytes.toString('base64url') !== cursor) throw invalidCursor()
      const [value, id] = body.parse(JSON.parse(json))
      return { value, id }
    },
  }
}

export type Cursors = ReturnType<typeof createCursors>

function invalidCursor() {
  return invalidField({ name: 'cursor', issue: 'invalid', expected: 'next_cursor of the same query' })
}
