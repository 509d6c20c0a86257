import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createKeyring } from '../../infra/crypto/keyring.ts'
import { applyNew } from '../../infra/event-store/apply-batch.ts'
import { liveBuild, useSchema } from '../../infra/event-store/builds.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import {
  type CursorQuery,
  createCursors,
  loadPage,
  type PagePosition,
} from '../../infra/http/pagination.ts'
import { derivedId } from '../../infra/ids.ts'
import { transaction } from '../../infra/postgres/pool.ts'
import { organizationsProjection } from '../../projections/organizations/projection.ts'
import { listKeys } from '../../projections/organizations/queries.ts'
import { listSessions } from '../../projections/sessions/list-sessions.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { listVisitors } from '../../projections/sessions/queries.ts'
import { amount } from '../support/long.ts'
import { openProjectionWorld, type ProjectionWorld } from '../support/projections.ts'
import { sessionScored, visitorLink } from '../support/session-scored.ts'

const seed = Date.now() % 2 ** 31
const cursors = createCursors({ keyring: createKeyring(randomBytes(32).toString('base64')) })
let world: ProjectionWorld
let offset = 0
let run = 0

beforeAll(async () => {
  world = await openProjectionWorld()
})
afterAll(() => world?.close())

async function apply(projection: Projection, events: DomainEvent[]): Promise<void> {
  const recorded = events.map((event) => {
    const meta = { eventId: `evt_${++offset}`, time: 1, organizationId, environment: null }
    return {
      ...event,
      meta,
      value: Buffer.alloc(0),
      position: { topic: 'any', partition: 0, offset },
    }
  })
  await transaction(world.database.pool, async (tx) => {
    const build = await liveBuild(tx, projection.name)
    if (!build) throw new Error('no live build')
    await tx.query(useSchema(build))
    await applyNew(tx, projection, recorded)
  })
}

/** Every run has an organization of its own; the event ids of one run are of no other. */
let organizationId = derivedId('org', '0')
const idOf = <P extends string>(prefix: P, n: number) => derivedId(prefix, String(run), String(n))
const scope = () => ({ organizationId, environment: 'live' }) as const

/** A list as its route pages it, and changes of it. Times are small, so that many rows share one. */
interface List {
  name: string
  prefix: string
  add(n: number, time: number): Promise<void>
  /** Changes the row, but not where it stands. */
  change(n: number, how: number): Promise<void>
  load(limit: number, after: PagePosition | undefined): Promise<Page>
}

interface Page {
  rows: PagePosition[]
  hasMore: boolean
}

const position = <Row extends { id: string }>(
  page: { rows: Row[]; hasMore: boolean },
  sortedBy: (row: Row) => number,
): Page => ({ ...page, rows: page.rows.map((row) => ({ value: sortedBy(row), id: row.id })) })

const keys: List = {
  name: 'API keys',
  prefix: 'key',
  add: (n, time) =>
    apply(organizationsProjection, [
      {
        type: 'ApiKeyIssued',
        data: {
          organization_id: organizationId,
          key_id: idOf('key', n),
          type: 'publishable',
          environment: 'live',
          name: 'Key',
          client_target: 'browser',
          allowed_origins: [],
          scopes: null,
          lookup_hash: idOf('key', n),
          secret_hash_sealed: null,
          key_preview: 'pk',
          display_key: 'pk',
          replaces_key_id: null,
          issued_at: time,
        },
      },
    ]),
  change(n, how) {
    const key = { organization_id: organizationId, key_id: idOf('key', n) }
    return apply(organizationsProjection, [
      how % 2
        ? { type: 'ApiKeyRevoked', data: { ...key, revoked_at: 1000, reason: 'requested' } }
        : { type: 'ApiKeyRenamed', data: { ...key, name: `Key ${how}`, renamed_at: 1000 } },
    ])
  },
  async load(limit, after) {
    const from = after && { createdAt: after.value, id: after.id }
    const page = await listKeys(world.database.pool, organizationId, { limit, after: from })
    return position(page, (row) => row.created_at)
  },
}

function scored(n: number, { session = n, time }: { session?: number; time: number }): DomainEvent {
  const data = sessionScored({
    ...scope(),
    organization_id: organizationId,
    session_id: idOf('sid', session),
    event_id: idOf('evt', session),
    evaluated_at: time,
    observed_at: time,
    created_at: time,
    visitor: visitorLink({ id: idOf('vid', n), identified_at: time }),
  })
  return { type: 'SessionScored', data }
}

const sessions: List = {
  name: 'sessions',
  prefix: 'sid',
  add: (n, time) => apply(sessionsProjection, [scored(n, { time })]),
  change: (n, how) =>
    apply(sessionsProjection, [
      {
        type: 'ClientUserAttached',
        data: {
          session_id: idOf('sid', n),
          organization_id: organizationId,
          environment: 'live',
          event_id: idOf('evt', 100_000 + offset),
          client_user_id: `user ${how}`,
          attached_at: 1000,
        },
      },
    ]),
  async load(limit, after) {
    const from = after && { evaluatedAt: after.value, id: after.id }
    const page = await listSessions(world.database.pool, scope(), { limit, after: from })
    return position(page, (row) => row.latest_decision.evaluated_at)
  },
}

const visitors: List = {
  name: 'visitors by first sight',
  prefix: 'vid',
  add: (n, time) => apply(sessionsProjection, [scored(n, { time })]),
  // Seen again, which changes everything of it but when it was seen first.
  change: (n, how) =>
    apply(sessionsProjection, [scored(n, { session: 100_000 + offset, time: 1000 + how })]),
  async load(limit, after) {
    const page = await listVisitors(world.database.pool, scope(), {
      limit,
      after,
      sort: 'first_seen',
    })
    return position(page, (row) => row.first_seen_at)
  },
}

const time = fc.integer({ min: 1, max: 4 })
const insertion = fc.record({ time })
const alteration = fc.record({ row: fc.nat(), how: fc.nat(9) })
const round = fc.record({
  limit: fc.integer({ min: 1, max: 7 }),
  changes: fc.array(fc.oneof(insertion, alteration), { maxLength: 4 }),
  /** While the page is read, or after it. */
  meanwhile: fc.boolean(),
})
const plan = fc.record({
  there: fc.array(time, { minLength: 1, maxLength: 15 }),
  rounds: fc.array(round, { minLength: 1, maxLength: 8 }),
})

type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never
type Round = Plan['rounds'][number]

/** The ids shown on all pages, in order; the rounds repeat until the last page. */
async function readAll(list: List, { there, rounds }: Plan): Promise<string[]> {
  const seen: string[] = []
  const query: CursorQuery = { list: list.name, organizationId }
  let added = 1000
  const alter = async ({ changes }: Round) => {
    for (const change of changes) {
      if ('time' in change) await list.add(added++, change.time)
      else await list.change(change.row % there.length, change.how)
    }
  }
  let cursor: string | undefined
  for (let i = 0; i < 100; i++) {
    const current = rounds[i % rounds.length]
    if (!current) throw new Error('no round')
    const { limit, meanwhile } = current
    const load = (after: PagePosition | undefined) => list.load(limit, after)
    const page = loadPage({ limit, cursor, query, cursors, load, positionOf: (row) => row })
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

for (const list of [keys, sessions, visitors]) {
  test(`${list.name}: whatever comes or changes between pages, each row that was there is seen once (seed ${seed})`, async () => {
    const property = fc.asyncProperty(plan, async (plan) => {
      run++
      organizationId = derivedId('org', String(run))
      for (const [n, time] of plan.there.entries()) await list.add(n, time)
      const seen = await readAll(list, plan)
      expect(new Set(seen).size).toBe(seen.length)
      const there = plan.there.map((_, n) => idOf(list.prefix, n))
      expect(seen.filter((id) => there.some((known) => known === id)).toSorted()).toEqual(
        there.toSorted(),
      )
    })
    await fc.assert(property, { seed, numRuns: amount({ few: 20, many: 60 }) })
  }, 60_000)
}
