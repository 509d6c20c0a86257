import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import { createCursors, loadPage } from '../../../infra/http/pagination.ts'

const older = randomBytes(32).toString('base64')
const newer = randomBytes(32).toString('base64')
const cursors = createCursors({ keyring: createKeyring(older) })
const query = {
  list: 'sessions',
  organizationId: 'org_1',
  environment: 'live',
  verdict: null,
  search: 'a',
}
const position = { value: 1_760_000_000_000, id: 'sid_1' }

describe('cursors', () => {
  test('decode to their position, in any order of the filters', () => {
    const cursor = cursors.encode(position, query)
    expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/)
    const reordered = Object.fromEntries(Object.entries(query).reverse())
    expect(cursors.decode(cursor, reordered)).toEqual(position)
  })

  test('are valid only for their organization, environment, list, filters and sort', () => {
    const cursor = cursors.encode(position, query)
    const others = [
      { ...query, organizationId: 'org_2' },
      { ...query, environment: 'test' },
      { ...query, list: 'fingerprints' },
      { ...query, search: null },
      { ...query, verdict: 'bot' },
      { ...query, sort: 'first_seen' },
    ]
    for (const other of others) expect(() => cursors.decode(cursor, other)).toThrow(ApiError)
  })

  test('survive a master key rotation', () => {
    const rotated = createCursors({ keyring: createKeyring(`${newer},${older}`) })
    expect(rotated.decode(cursors.encode(position, query), query)).toEqual(position)
    expect(() => cursors.decode(rotated.encode(position, query), query)).toThrow(ApiError)
  })

  test('cannot be modified or forged', () => {
    const cursor = cursors.encode(position, query)
    for (let at = 0; at < cursor.length; at++) {
      const changed = `${cursor.slice(0, at)}${cursor[at] === 'A' ? 'B' : 'A'}${cursor.slice(at + 1)}`
      expect(() => cursors.decode(changed, query)).toThrow(ApiError)
    }
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(() => cursors.decode(text, query)).toThrow(ApiError)
      }),
    )
  })

  test('are rejected with padding, spaces or trailing characters', () => {
    const cursor = cursors.encode(position, query)
    for (const text of [`${cursor}=`, `${cursor} `, ` ${cursor}`, `${cursor}A`, `${cursor}.`])
      expect(() => cursors.decode(text, query)).toThrow(ApiError)
  })
})

test.each([undefined, ''])('the cursor %j returns the first page', async (cursor) => {
  const page = await loadPage({
    limit: 1,
    cursor,
    query,
    cursors,
    load: async (after) => ({ rows: [after], hasMore: false }),
    positionOf: () => position,
  })
  expect(page).toEqual({ rows: [undefined], pagination: { limit: 1, has_more: false } })
})
