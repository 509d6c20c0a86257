import pino from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { applyNew } from '../../../infra/event-store/apply-batch.ts'
import { liveBuild, useSchema } from '../../../infra/event-store/builds.ts'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { noNetwork } from '../../../infra/ip/network.ts'
import type { LogRecord } from '../../../infra/log/port.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import { nothingLearned } from '../../../services/scoring/answers.ts'
import { rebuildVisitors, restoreVisitors } from '../../../services/scoring/restore.ts'
import { createScoringTables } from '../../../services/scoring/store.ts'
import { runScoring } from '../../../services/scoring/worker.ts'
import { createMemoryLog, type MemoryLog } from '../../support/memory-log.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'
import { batch, handOff, metaOf, opened, startedAt, type TestSession, testSession } from './support/events.ts'
import * as clients from './support/snapshots.ts'

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
    ...{ learned: nothingLearned, log, pool: database.pool, codec, network: noNetwork, logger },
    clock: () => now,
    applied: { waitFor: async () => {} },
  })
}

const loseDatabase = () => database.pool.query('drop schema if exists scoring cascade')

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
    .flatMap(({ type, data }) => (type === 'SessionScored' && data.visitor ? [data.visitor.id] : []))
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

async function fillReadModel(records: LogRecord[]): Promise<void> {
  const decisions = records.filter(({ topic }) => topic === decisionsTopic)
  await transaction(database.pool, async (tx) => {
    const build = await liveBuild(tx, 'sessions')
    if (!build) throw new Error('no live build')
    await tx.query(useSchema(build))
    await applyNew(
      tx,
      sessionsProjection,
      decisions.map((record) => codec.fromRecord(record)),
    )
  })
}

const telling = { desktopSafari: clients.desktopSafari, desktopFirefox: clients.desktopFirefox }
const kinds = Object.entries({ ...telling, chromebook: clients.chromebook, iphone: clients.iphoneSafari })
const devices = kinds.map(([name, client]) => testSession(name, { client }))
const returning = devices.map((device) =>
  testSession(`${device.id}-again`, { client: device.client, continuityIds: [device.continuityId] }),
)
/** Without what the browser kept. */
const cleared = Object.entries(telling).map(([name, client]) => testSession(`${name}-cleared`, { client }))

const read = async () =>
  (await database.pool.query('select * from scoring.visitors order by visitor_id')).rows

it('what is read from the log equals what scoring has', async () => {
  await visit(...devices, ...returning)
  const sources = { pool: database.pool, log, codec }
  const report = await rebuildVisitors(sources, { acceptDifferences: false })
  expect(report).toMatchObject({ sessions: 8, visitors: 4, differences: 0, switched: true })
  expect(report.keys).toBeGreaterThan(8)

  await database.pool.query("update scoring.visitors set profile = 'null' where sessions = 2")
  const differing = await rebuildVisitors(sources, { acceptDifferences: false })
  expect(differing).toMatchObject({ differences: 8, switched: false })
  expect(await rebuildVisitors(sources, { acceptDifferences: true })).toMatchObject({ switched: true })
  expect(await rebuildVisitors(sources, { acceptDifferences: false })).toMatchObject({ differences: 0 })
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
  expect((await read()).map(({ sessions }) => sessions)).toEqual(rows.map(({ sessions }) => sessions))
})

it('a session that scoring tried twice to link is as the last try has it', async () => {
  await visit(...devices)
  const rows = await read()
  const first = log.records.flatMap((record) => {
    const event = record.topic === kept[1] ? codec.fromRecord(record) : undefined
    if (event?.type !== 'VisitorLinked') return []
    return [
      codec.toRecord({ ...event, data: { ...event.data, linked_at: 5, visitor_id: 'vid_lost' } }, event.meta),
    ]
  })
  const tries = first.map((record, offset) => ({ ...record, partition: 0, offset, timestamp: now }))
  await startOn([...tries, ...log.records.filter(({ topic }) => kept.includes(topic))])
  expect(tries).toHaveLength(devices.length)
  expect(await read()).toEqual(rows)
})

const day = 24 * 60 * 60 * 1000

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
  const { rows } = await database.pool.query('select visitor_id, count(*)::int from scoring.links group by 1')
  expect(rows.map(({ count }) => count)).toEqual(twins.map(() => 2))
  const sources = { pool: database.pool, log, codec }
  expect(await rebuildVisitors(sources, { acceptDifferences: false })).toMatchObject({ differences: 0 })
})

it('visitors of before links were kept get them from the log', async () => {
  await visit(...devices)
  await worker.stop()
  const rows = await read()
  await database.pool.query(
    'delete from scoring.links; update scoring.visitors set lineage = null; delete from scoring.visitor_keys',
  )
  await start()
  expect(await read()).toEqual(rows)
})

it('leaves visitors as they are once scoring has begun', async () => {
  await visit(...devices)
  expect(await restoreVisitors({ pool: database.pool, log, codec })).toBeUndefined()
})

it('a decision of a version that recorded no link leads to its visitor by the continuity id', async () => {
  const [device = testSession('none')] = devices
  await visit(device)
  const old = log.records.filter(({ topic }) => topic === decisionsTopic)
  const visitor = visitorOf(device)
  await startOn(old)
  const again = testSession('again', { client: device.client, continuityIds: [device.continuityId] })
  await visit(again)
  expect(visitorOf(again)).toBe(visitor)
})

it('tables of a new installation are left empty, and say that scoring has begun', async () => {
  await worker.stop()
  await loseDatabase()
  await transaction(database.pool, createScoringTables)
  const sources = { pool: database.pool, log, codec }
  expect(await restoreVisitors(sources)).toMatchObject({ sessions: 0, visitors: 0, keys: 0 })
  expect(await restoreVisitors(sources)).toBeUndefined()
})
