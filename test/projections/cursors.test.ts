import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createKeyring } from '../../infra/crypto/keyring.ts'
import {
  type CursorQuery,
  createCursors,
  loadPage,
  type PagePosition,
} from '../../infra/http/pagination.ts'
import { derivedId } from '../../infra/ids.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { listVisitors } from '../../projections/sessions/queries.ts'
import { amount } from '../support/long.ts'
import { sessionScored, visitorLink } from '../support/session-scored.ts'
import { recordedSession, useReadModel } from './read-model.ts'

// Visitors by first sight, whose place nothing changes. For sessions, which move, session-filters.test.ts has the same.

const model = useReadModel(sessionsProjection, recordedSession)
const seed = Date.now() % 2 ** 31
const cursors = createCursors({ keyring: createKeyring(randomBytes(32).toString('base64')) })
/** Every run has an organization of its own. */
let organizationId = derivedId('org', '0')
let sessions = 0

const visitorId = (n: number) => derivedId('vid', organizationId, String(n))

/** The visitor is seen, in a session of its own. */
function see(visitor: number, time: number): Promise<void> {
  const session = String(sessions++)
  const data = sessionScored({
    organization_id: organizationId,
    session_id: derivedId('sid', session),
    event_id: derivedId('evt', session),
    evaluated_at: time,
    created_at: time,
    visitor: visitorLink({ id: visitorId(visitor), identified_at: time }),
  })
  return model.given({ type: 'SessionScored', data })
}

async function load(limit: number, after: PagePosition | undefined) {
  const query = { limit, after, sort: 'first_seen' } as const
  const page = await listVisitors(model.pool, { organizationId, environment: 'live' }, query)
  return { ...page, rows: page.rows.map((row) => ({ value: row.first_seen_at, id: row.id })) }
}

// Times are small, so that many visitors share one.
const time = fc.integer({ min: 1, max: 4 })
const round = fc.record({
  limit: fc.integer({ min: 1, max: 7 }),
  changes: fc.array(fc.oneof(fc.record({ time }), fc.record({ visitor: fc.nat() })), {
    maxLength: 4,
  }),
  /** While the page is read, or after it. */
  meanwhile: fc.boolean(),
})
const plan = fc.record({
  there: fc.array(time, { minLength: 1, maxLength: 15 }),
  rounds: fc.array(round, { minLength: 1, maxLength: 8 }),
})
type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never

/** The ids shown on all pages, in order; the rounds repeat until the last page. */
async function readAll({ there, rounds }: Plan): Promise<string[]> {
  const seen: string[] = []
  const query: CursorQuery = { list: 'visitors', organizationId }
  let added = 1000
  async function alter({ changes }: Plan['rounds'][number]): Promise<void> {
    for (const change of changes) {
      if ('time' in change) await see(added++, change.time)
      else await see(change.visitor % there.length, 1000)
    }
  }
  let cursor: string | undefined
  for (let i = 0; i < 100; i++) {
    const current = rounds[i % rounds.length]
    if (!current) throw new Error('no round')
    const { limit, meanwhile } = current
    const loading = { limit, cursor, query, cursors, positionOf: (row: PagePosition) => row }
    const page = loadPage({ ...loading, load: (after) => load(limit, after) })
    // Rows that keep coming would let a small page never reach the end.
    const altering = i < 10 && meanwhile ? alter(current) : undefined
    const { rows, pagination } = await page
    await (altering ?? (i < 10 ? alter(current) : undefined))
    expect(rows.length).toBeLessThanOrEqual(limit)
    seen.push(...rows.map(({ id }) => id))
    if (!pagination.has_more) return seen
    cursor = pagination.next_cursor
    expect(cursor).toBeDefined()
  }
  throw new Error('the pages do not end')
}

test(`whatever comes or changes between pages, each row that was there is seen once (seed ${seed})`, async () => {
  const property = fc.asyncProperty(plan, async (plan) => {
    organizationId = derivedId('org', String(sessions))
    for (const [n, time] of plan.there.entries()) await see(n, time)
    const seen = await readAll(plan)
    expect(new Set(seen).size).toBe(seen.length)
    const there = plan.there.map((_, n) => visitorId(n)).toSorted()
    expect(there.filter((id) => seen.includes(id))).toEqual(there)
  })
  await fc.assert(property, { seed, numRuns: amount({ few: 30, many: 100 }) })
}, 60_000)
