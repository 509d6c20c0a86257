import pino from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { applyNew } from '../../../infra/event-store/apply-batch.ts'
import { liveBuild, useSchema } from '../../../infra/event-store/builds.ts'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { eraseDataKeys } from '../../../infra/event-store/data-key-table.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { noNetwork } from '../../../infra/ip/network.ts'
import type { LogRecord } from '../../../infra/log/port.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { policiesProjection } from '../../../projections/policies/projection.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import type { OrganizationDataExpired, VisitorErased } from '../../../schemas/events.ts'
import { eraseStates, hideVisitors } from '../../../services/scoring/erase.ts'
import { rebuildVisitors, restoreVisitors } from '../../../services/scoring/restore.ts'
import { runVisitorPruner } from '../../../services/scoring/visitors/prune.ts'
import { runScoring } from '../../../services/scoring/worker.ts'
import { visitorErased } from '../../support/erased.ts'
import { eventually } from '../../support/eventually.ts'
import { createMemoryDataKeys } from '../../support/memory-data-keys.ts'
import { createMemoryLog, type MemoryLog } from '../../support/memory-log.ts'
import { noSkips } from '../../support/no-skips.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'
import { testCause } from '../../support/projections.ts'
import {
  batch,
  handOff,
  metaOf,
  opened,
  organizationId,
  startedAt,
  type TestSession,
  testSession,
} from './support/events.ts'
import * as clients from './support/snapshots.ts'
import { taught } from './support/taught.ts'

const codec = createCodec()
const logger = pino({ level: 'silent' })
const decisionsTopic = 'tidegate.sessions.v1'
/** Kept for ever. */
const kept = [decisionsTopic, 'tidegate.visitors.v1']
let database: TestDatabase
let log: MemoryLog
let worker: Awaited<ReturnType<typeof runScoring>>
let now = startedAt

beforeAll(async () => {
  database = await createTestDatabase()
})
beforeEach(async () => {
  now = startedAt
  log = createMemoryLog({ now: () => now })
  await start()
})
afterEach(async () => {
  await worker.stop()
  await loseDatabase()
})
afterAll(() => database.drop())

async function start(): Promise<void> {
  worker = await runScoring({
    dataKeys: createMemoryDataKeys(),
    learned: taught,
    log,
    pool: database.pool,
    codec,
    network: noNetwork,
    logger,
    skips: noSkips,
    clock: () => now,
    applied: { waitFor: async () => {} },
  })
}

const loseDatabase = () =>
  database.pool.query(
    'truncate scoring.offsets, scoring.sessions, scoring.visitors, scoring.links, scoring.visitor_keys',
  )

async function visit(...sessions: TestSession[]): Promise<void> {
  for (const session of sessions) {
    now += 1000
    const events = [...opened({ ...session, openedAt: now }), batch(session), handOff(session)]
    await log.append(events.map((event) => codec.toRecord(event, metaOf(event))))
    await log.settled()
  }
}

/** The visitor that was last decided for the session. */
function visitorOf({ id }: TestSession): string | undefined {
  const ids = log.records
    .filter((record) => record.topic === decisionsTopic && record.key === id)
    .map((record) => codec.fromRecord(record))
    .flatMap(({ type, data }) =>
      type === 'SessionScored' && data.visitor ? [data.visitor.id] : [],
    )
  return ids.at(-1)
}

async function startOn(records: LogRecord[]): Promise<void> {
  await worker.stop()
  await loseDatabase()
  log = createMemoryLog({ now: () => now })
  await log.append(records)
  await start()
  await log.settled()
}

async function fillReadModel(records: LogRecord[], projection = sessionsProjection): Promise<void> {
  const read = records.filter(({ topic }) => projection.topics.includes(topic))
  await transaction(database.pool, async (tx) => {
    const build = await liveBuild(tx, projection.name)
    if (!build) throw new Error('no live build')
    await tx.query(useSchema(build))
    await applyNew(
      tx,
      projection,
      read.map((record) => codec.fromRecord(record)),
    )
  })
}

const day = 24 * 60 * 60 * 1000

const telling = { desktopSafari: clients.desktopSafari, desktopFirefox: clients.desktopFirefox }
const kinds = Object.entries({
  ...telling,
  chromebook: clients.chromebook,
  iphone: clients.iphoneSafari,
})
const devices = kinds.map(([name, client]) => testSession(name, { client }))
const returning = devices.map((device) =>
  testSession(`${device.id}-again`, {
    client: device.client,
    continuityIds: [device.continuityId],
  }),
)
/** Without what the browser kept. */
const cleared = Object.entries(telling).map(([name, client]) =>
  testSession(`${name}-cleared`, { client }),
)

const read = async () =>
  (await database.pool.query('select * from scoring.visitors order by visitor_id')).rows

it('what is read from the log equals what scoring has', async () => {
  await visit(...devices, ...returning)
  const sources = { pool: database.pool, log, codec, skips: noSkips }
  const report = await rebuildVisitors(sources, { acceptDifferences: false })
  expect(report).toMatchObject({ sessions: 8, visitors: 4, differences: 0, switched: true })
  expect(report.keys).toBeGreaterThan(8)

  await database.pool.query("update scoring.visitors set profile = 'null' where sessions = 2")
  const differing = await rebuildVisitors(sources, { acceptDifferences: false })
  expect(differing).toMatchObject({ differences: 8, switched: false })
  expect(await rebuildVisitors(sources, { acceptDifferences: true })).toMatchObject({
    switched: true,
  })
  expect(await rebuildVisitors(sources, { acceptDifferences: false })).toMatchObject({
    differences: 0,
  })
})

it('knows every visitor again after a loss of the database and of what clients sent', async () => {
  await visit(...devices)
  const before = devices.map(visitorOf)
  expect(new Set(before).size).toBe(devices.length)
  const rows = await read()
  await startOn(log.records.filter(({ topic }) => kept.includes(topic)))
  expect(await read()).toEqual(rows)
  await visit(...returning)
  expect(returning.map(visitorOf)).toEqual(before)
  now += 2 * day
  await visit(...cleared)
  expect(cleared.map(visitorOf)).toEqual(before.slice(0, cleared.length))
})

it('a session is counted once, also where what its client sent is still there to be scored again', async () => {
  await visit(...devices)
  const rows = await read()
  const visitors = devices.map(visitorOf)
  await fillReadModel(log.records)
  await startOn(log.records)
  expect(devices.map(visitorOf)).toEqual(visitors)
  expect((await read()).map(({ sessions }) => sessions)).toEqual(
    rows.map(({ sessions }) => sessions),
  )
})

it('a session that scoring tried twice to link is as the last try has it', async () => {
  await visit(...devices)
  const rows = await read()
  const first = log.records.flatMap((record) => {
    const event = record.topic === kept[1] ? codec.fromRecord(record) : undefined
    if (event?.type !== 'VisitorLinked') return []
    return [
      codec.toRecord(
        { ...event, data: { ...event.data, linked_at: 5, visitor_id: 'vid_lost' } },
        event.meta,
      ),
    ]
  })
  const tries = first.map((record, offset) => ({ ...record, partition: 0, offset, timestamp: now }))
  await startOn([...tries, ...log.records.filter(({ topic }) => kept.includes(topic))])
  expect(tries).toHaveLength(devices.length)
  expect(await read()).toEqual(rows)
})

it('of 20 twins each has its own visitor once each has come back, and a rebuild repeats it', async () => {
  const names = Array.from({ length: 20 }, (_, i) => `twin-${i}`)
  const twins = names.map((name, i) => testSession(name, { ip: `198.51.${i}.1` }))
  for (const twin of twins) {
    now += day
    await visit(twin)
  }
  expect(new Set(twins.map(visitorOf)).size).toBe(1)
  for (const { id, ip, continuityId } of twins) {
    now += day
    await visit(testSession(`${id}-back`, { ip, continuityIds: [continuityId], continuityId }))
  }
  const { rows } = await database.pool.query(
    'select visitor_id, count(*)::int from scoring.links group by 1',
  )
  expect(rows.map(({ count }) => count)).toEqual(twins.map(() => 2))
  const sources = { pool: database.pool, log, codec, skips: noSkips }
  expect(await rebuildVisitors(sources, { acceptDifferences: false })).toMatchObject({
    differences: 0,
  })
})

it('leaves visitors as they are once scoring has begun', async () => {
  await visit(...devices)
  expect(await restoreVisitors({ pool: database.pool, log, codec, skips: noSkips })).toBeUndefined()
})

describe('visitors whose time is over', () => {
  const [one, two] = [testSession('one'), testSession('two', { client: clients.iphoneSafari })]
  const returned = (name: string, session: TestSession) =>
    testSession(name, { client: session.client, continuityIds: [session.continuityId] })
  const sources = () => ({ pool: database.pool, log, codec, skips: noSkips })
  const keyCount = async () =>
    (await database.pool.query('select * from scoring.visitor_keys')).rowCount

  const orphans = async () => {
    const { rowCount } = await database.pool.query(
      `select from (select visitor_id from scoring.visitor_keys union all select visitor_id from scoring.links) known
       where not exists (select from scoring.visitors v where v.visitor_id = known.visitor_id)`,
    )
    return rowCount
  }

  /** As the scheduler says it and the read model has it. */
  async function expire(before: number): Promise<void> {
    const data: OrganizationDataExpired = {
      organization_id: organizationId,
      sessions_before: null,
      decisions_before: null,
      webhooks_before: null,
      visitors_before: before,
      expired_at: now,
    }
    const event: DomainEvent = { type: 'OrganizationDataExpired', data }
    const meta = {
      eventId: `expired ${before}`,
      time: now,
      organizationId: organizationId,
      environment: null,
    }
    const stored = log.records.length
    await log.append([codec.toCausedRecord(event, meta, testCause)])
    await fillReadModel(log.records.slice(stored), policiesProjection)
  }

  afterEach(async () => {
    const build = await liveBuild(database.pool, 'policies')
    await database.pool.query(
      `truncate ${build?.schema}.data_expirations, ${build?.schema}.policy_applied_events`,
    )
  })

  it('are not found again from then on, forgotten soon, and a rebuild without them is equal', async () => {
    await visit(one)
    const before = now + 500
    await visit(two)
    await expire(before)
    const [again, twoAgain] = [returned('one-again', one), returned('two-again', two)]
    await visit(again, twoAgain)
    expect(visitorOf(again)).not.toBe(visitorOf(one))
    expect(visitorOf(twoAgain)).toBe(visitorOf(two))

    const pruner = runVisitorPruner({ pool: database.pool, logger, intervalMs: 20 })
    await eventually(async () =>
      expect((await read()).map(({ visitor_id }) => visitor_id).sort()).toEqual(
        [visitorOf(again), visitorOf(two)].sort(),
      ),
    )
    await eventually(async () => expect(await orphans()).toBe(0))
    await pruner.stop()
    const rows = await read()
    const report = await rebuildVisitors(sources(), { acceptDifferences: false })
    expect(report).toMatchObject({ visitors: 2, differences: 0, switched: true })
    expect(await keyCount()).toBe(report.keys)
    expect(await read()).toEqual(rows)
  })

  it('stay with their keys and links when scoring sees them again while they are forgotten', async () => {
    await visit(one, two)
    const [id, ended] = [visitorOf(one), visitorOf(two)]
    await expire(now + 500)
    const { pool } = database
    const counts = async () => {
      const { rows } = await pool.query<{ keys: number; links: number }>(
        `select (select count(*)::integer from scoring.visitor_keys where visitor_id = $1) as keys,
           (select count(*)::integer from scoring.links where visitor_id = $1) as links`,
        [id],
      )
      return rows[0]
    }
    const before = await counts()
    const scoring = await pool.connect()
    await scoring.query('begin')
    await scoring.query('update scoring.visitors set last_seen_at = $2 where visitor_id = $1', [
      id,
      now + day,
    ])
    await scoring.query(`insert into scoring.visitor_keys values ('\\xab', $1)`, [id])

    const pruner = runVisitorPruner({ pool, logger, intervalMs: 20 })
    await eventually(async () => {
      const { rowCount } = await pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      expect(rowCount).toBe(1)
    })
    await scoring.query('commit')
    scoring.release()
    await eventually(async () =>
      expect((await read()).map(({ visitor_id }) => visitor_id)).not.toContain(ended),
    )
    await pruner.stop()
    expect((await read()).map(({ visitor_id }) => visitor_id)).toEqual([id])
    expect(before).toMatchObject({ links: 1 })
    expect(await counts()).toEqual({ keys: (before?.keys ?? 0) + 1, links: 1 })
    expect(await orphans()).toBe(0)
  })

  it('are forgotten with what an erasure that failed halfway left of others', async () => {
    await visit(one, two)
    const hidden = { visitorIds: [visitorOf(one) ?? ''], continuityIds: [] }
    const scope = { organizationId, environment: 'live' } as const
    await transaction(database.pool, (tx) => hideVisitors(tx, { scope, ...hidden }))
    expect(await orphans()).toBe(1)
    await expire(startedAt)
    const pruner = runVisitorPruner({ pool: database.pool, logger, intervalMs: 20 })
    await eventually(async () => expect(await orphans()).toBe(0))
    await pruner.stop()
    expect((await read()).map(({ visitor_id }) => visitor_id)).toEqual([visitorOf(two)])
  })

  it('go with a rebuild and a restore that come before they are forgotten', async () => {
    await visit(one)
    const before = now + 500
    await visit(two)
    await expire(before)
    const report = await rebuildVisitors(sources(), { acceptDifferences: false })
    expect(report).toMatchObject({ visitors: 1, differences: 0, switched: true })
    const rows = await read()
    expect(rows.map(({ visitor_id }) => visitor_id)).toEqual([visitorOf(two)])
    await startOn(
      log.records.filter(({ topic }) => [...kept, 'tidegate.policies.v1'].includes(topic)),
    )
    expect(await read()).toEqual(rows)
    expect(await keyCount()).toBe(report.keys)
    expect(await orphans()).toBe(0)
  })

  it('are begun anew by who kept their id, when a split leaves only old sessions to them', async () => {
    await visit(one)
    const before = now + 500
    now += 2 * day
    const twin = testSession('twin', { ip: one.ip })
    await visit(twin)
    expect(visitorOf(twin)).toBe(visitorOf(one))
    await expire(before)
    now += day
    const again = returned('one-again', one)
    await visit(again)
    expect(visitorOf(again)).toBe(visitorOf(one))
    expect(
      (await read()).map(({ visitor_id, sessions }) => [visitor_id === visitorOf(one), sessions]),
    ).toEqual(
      expect.arrayContaining([
        [true, expect.any(Number)],
        [false, 1],
      ]),
    )
    expect(await rebuildVisitors(sources(), { acceptDifferences: false })).toMatchObject({
      visitors: 2,
      differences: 0,
    })
    expect(await orphans()).toBe(0)
  })
})

it('a visitor of whom one session was erased is as the others have it, and so is a rebuild', async () => {
  const [device = testSession('none'), other = testSession('none')] = devices
  const [again = testSession('none')] = returning
  await visit(device, again, other)
  const [shared, alone] = [visitorOf(device) ?? '', visitorOf(other) ?? '']
  expect(visitorOf(again)).toBe(shared)
  await erase([device, other], { changed_visitor_ids: [shared], erased_visitor_ids: [alone] })
  const sources = { pool: database.pool, log, codec, skips: noSkips }
  expect(await read()).toMatchObject([{ visitor_id: shared, sessions: 1 }])
  expect(await rebuildVisitors(sources, { acceptDifferences: false })).toMatchObject({
    differences: 0,
  })
  expect(await statesOf()).toEqual([again.id])

  await log.append([batch(device, { seq: 2 })].map((event) => codec.toRecord(event, metaOf(event))))
  await log.settled()
  expect(await statesOf()).toEqual([again.id])
  await startOn(
    log.records.filter(({ topic }) => [...kept, 'tidegate.erasures.v1'].includes(topic)),
  )
  expect(await read()).toMatchObject([{ visitor_id: shared, sessions: 1 }])
})

it('a split of an erased visitor brings nothing of it back', async () => {
  const [one, twin] = [testSession('one'), testSession('twin')]
  const back = testSession('twin-back', { continuityIds: [twin.continuityId] })
  await visit(one)
  now += 10 * 60 * 1000
  await visit(twin)
  now += day
  await visit(back)
  const [first, second] = [visitorOf(one) ?? '', visitorOf(back) ?? '']
  expect(first).not.toBe(second)
  await erase([twin, back], { erased_visitor_ids: [second] })
  const links = async () => (await database.pool.query('select session_id from scoring.links')).rows
  for (const again of [false, true]) {
    if (again)
      await startOn(
        log.records.filter(({ topic }) => [...kept, 'tidegate.erasures.v1'].includes(topic)),
      )
    expect(await read()).toMatchObject([{ visitor_id: first, sessions: 1 }])
    expect(await links()).toEqual([{ session_id: one.id }])
    const sources = { pool: database.pool, log, codec, skips: noSkips }
    expect(await rebuildVisitors(sources, { acceptDifferences: false })).toMatchObject({
      differences: 0,
    })
  }
})

async function erase(sessions: TestSession[], visitors: Partial<VisitorErased>): Promise<void> {
  const data = visitorErased(
    sessions.map(({ id }) => id),
    visitors,
  )
  const meta = { eventId: data.event_id, time: now, organizationId: null, environment: null }
  await log.append([codec.toCausedRecord({ type: 'VisitorErased', data }, meta, testCause)])
  await transaction(database.pool, async (tx) => {
    await eraseStates(tx, [data])
    await eraseDataKeys(tx, [data])
  })
}

async function statesOf(): Promise<string[]> {
  const { rows } = await database.pool.query<{ session_id: string }>(
    'select session_id from scoring.sessions order by 1',
  )
  return rows.map(({ session_id }) => session_id)
}

it('tables of a new installation are left empty, and say that scoring has begun', async () => {
  await worker.stop()
  await loseDatabase()
  const sources = { pool: database.pool, log, codec, skips: noSkips }
  expect(await restoreVisitors(sources)).toMatchObject({ sessions: 0, visitors: 0, keys: 0 })
  expect(await restoreVisitors(sources)).toBeUndefined()
})
