import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { applyNewEvents } from '../../../infra/event-store/apply-batch.ts'
import { findLiveBuild, searchPath } from '../../../infra/event-store/builds.ts'
import { eraseDataKeys } from '../../../infra/event-store/data-key-table.ts'
import type { LogRecord } from '../../../infra/log/port.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { policiesProjection } from '../../../projections/policies/projection.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import type { OrganizationDataExpired, VisitorErased } from '../../../schemas/events.ts'
import { eraseScoringData, stopLinking } from '../../../services/scoring/erase.ts'
import { rebuildVisitors, restoreVisitors } from '../../../services/scoring/restore.ts'
import { runVisitorPruner } from '../../../services/scoring/visitors/prune.ts'
import { visitorErased } from '../../support/erased.ts'
import { eventually } from '../../support/eventually.ts'
import { noSkips } from '../../support/no-skips.ts'
import { silent, testCause } from '../../support/projections.ts'
import {
  batch,
  handOff,
  organizationId,
  startedAt,
  type TestSession,
  testSession,
  visitOf,
} from './support/events.ts'
import { codec, loseScoring, useScoring } from './support/scoring.ts'
import * as clients from './support/snapshots.ts'

/** Topics without expiry. */
const permanentTopics = ['tidegate.sessions.v1', 'tidegate.visitors.v1']
const day = 24 * 60 * 60 * 1000

const world = await useScoring()
beforeEach(() => world.start())

async function visit(...sessions: TestSession[]): Promise<void> {
  for (const session of sessions) {
    world.now += 1000
    await world.append(...visitOf({ ...session, openedAt: world.now }), handOff(session))
  }
}

/** Returns the visitor of the session's last decision. */
const visitorOf = (session: TestSession): string | undefined =>
  world
    .decisions(session)
    .flatMap(({ visitor }) => visitor?.id ?? [])
    .at(-1)

const restartOn = (...topics: string[]) =>
  world.restartOn(world.log.records.filter(({ topic }) => topics.includes(topic)))

const sources = () => ({ ...world.parts, skips: noSkips })
const rebuild = (acceptDifferences = false) => rebuildVisitors(sources(), { acceptDifferences })

async function fillReadModel(records: LogRecord[], projection = sessionsProjection): Promise<void> {
  const events = records
    .filter(({ topic }) => projection.topics.includes(topic))
    .map((record) => codec.fromRecord(record))
  await transaction(world.pool, async (tx) => {
    const build = await findLiveBuild(tx, projection.name)
    if (!build) throw new Error('no live build')
    await tx.query(searchPath(build))
    await applyNewEvents(tx, projection, events)
  })
}

const rowsOf = async (text: string) => (await world.pool.query(text)).rows
const read = () => rowsOf('select * from scoring.visitors order by visitor_id')
const idsRead = async () => (await read()).map(({ visitor_id }) => visitor_id)
const keyCount = async () => (await rowsOf('select from scoring.visitor_keys')).length

/** Counts the keys and links without a visitor. */
const orphans = async () =>
  (
    await rowsOf(
      `select from (select visitor_id from scoring.visitor_keys union all select visitor_id from scoring.links) known
       where not exists (select from scoring.visitors v where v.visitor_id = known.visitor_id)`,
    )
  ).length

/** Starts a pruner that polls every 20 ms. */
const startPruner = () => runVisitorPruner({ pool: world.pool, logger: silent, intervalMs: 20 })

const revisit = (name: string, { client, continuityId }: TestSession) =>
  testSession(name, { client, continuityIds: [continuityId] })

const desktops = { desktopSafari: clients.desktopSafari, desktopFirefox: clients.desktopFirefox }
const kinds = Object.entries({
  ...desktops,
  chromebook: clients.chromebook,
  iphone: clients.iphoneSafari,
})
const devices = kinds.map(([name, client]) => testSession(name, { client }))
const returning = devices.map((device) => revisit(`${device.id}-again`, device))
/** Without stored ids. */
const cleared = Object.entries(desktops).map(([name, client]) =>
  testSession(`${name}-cleared`, { client }),
)

it('rebuilds the same visitors from the log', async () => {
  await visit(...devices, ...returning)
  const report = await rebuild()
  expect(report).toMatchObject({ sessions: 8, visitors: 4, differences: 0, switched: true })
  expect(report.keys).toBeGreaterThan(8)

  await world.pool.query("update scoring.visitors set profile = 'null' where sessions = 2")
  expect(await rebuild()).toMatchObject({ differences: 8, switched: false })
  expect(await rebuild(true)).toMatchObject({ switched: true })
  expect(await rebuild()).toMatchObject({ differences: 0 })
})

it('recognizes every visitor after the loss of the database and the collect topic', async () => {
  await visit(...devices)
  const before = devices.map(visitorOf)
  expect(new Set(before).size).toBe(devices.length)
  const rows = await read()
  await restartOn(...permanentTopics)
  expect(await read()).toEqual(rows)
  await visit(...returning)
  expect(returning.map(visitorOf)).toEqual(before)
  world.now += 2 * day
  await visit(...cleared)
  expect(cleared.map(visitorOf)).toEqual(before.slice(0, cleared.length))
})

it('counts a session once, even if its records are scored again', async () => {
  await visit(...devices)
  const rows = await read()
  const visitors = devices.map(visitorOf)
  await fillReadModel(world.log.records)
  await world.restartOn(world.log.records)
  expect(devices.map(visitorOf)).toEqual(visitors)
  expect((await read()).map(({ sessions }) => sessions)).toEqual(
    rows.map(({ sessions }) => sessions),
  )
})

it('a session that was linked twice keeps its last link', async () => {
  await visit(...devices)
  const rows = await read()
  const linked = world.log.records
    .filter(({ topic }) => topic === permanentTopics[1])
    .map((record) => codec.fromRecord(record))
  const tries = linked.flatMap(({ type, data, meta }, offset) => {
    if (type !== 'VisitorLinked') return []
    const lost = { type, data: { ...data, linked_at: 5, visitor_id: 'vid_lost' } }
    const place = { partition: 0, offset, timestamp: world.now }
    return { ...codec.toRecord(lost, meta), ...place }
  })
  const rest = world.log.records.filter(({ topic }) => permanentTopics.includes(topic))
  await world.restartOn([...tries, ...rest])
  expect(tries).toHaveLength(devices.length)
  expect(await read()).toEqual(rows)
})

describe('expired visitors', () => {
  const [one, two] = [testSession('one'), testSession('two', { client: clients.iphoneSafari })]

  /** Appends the expiry event, and applies it to the read model. */
  async function expire(before: number): Promise<void> {
    const data: OrganizationDataExpired = {
      organization_id: organizationId,
      sessions_before: null,
      decisions_before: null,
      webhooks_before: null,
      visitors_before: before,
      expired_at: world.now,
    }
    const of = { organizationId, environment: null }
    const meta = { eventId: `expired ${before}`, time: world.now, ...of }
    const stored = world.log.records.length
    const record = codec.toRecordWithCause(
      { type: 'OrganizationDataExpired', data },
      meta,
      testCause,
    )
    await world.log.append([record])
    await fillReadModel(world.log.records.slice(stored), policiesProjection)
  }

  afterEach(async () => {
    const build = await findLiveBuild(world.pool, 'policies')
    await world.pool.query(
      `truncate ${build?.schema}.data_expirations, ${build?.schema}.policy_applied_events`,
    )
  })

  it('are not matched, are deleted soon, and are missing in a rebuild', async () => {
    await visit(one)
    const before = world.now + 500
    await visit(two)
    await expire(before)
    const [again, twoAgain] = [revisit('one-again', one), revisit('two-again', two)]
    await visit(again, twoAgain)
    expect(visitorOf(again)).not.toBe(visitorOf(one))
    expect(visitorOf(twoAgain)).toBe(visitorOf(two))

    const pruner = startPruner()
    await eventually(async () =>
      expect((await idsRead()).sort()).toEqual([visitorOf(again), visitorOf(two)].sort()),
    )
    await eventually(async () => expect(await orphans()).toBe(0))
    await pruner.stop()
    const rows = await read()
    const report = await rebuild()
    expect(report).toMatchObject({ visitors: 2, differences: 0, switched: true })
    expect(await keyCount()).toBe(report.keys)
    expect(await read()).toEqual(rows)
  })

  it('are kept with their keys and links if scoring sees them during deletion', async () => {
    await visit(one, two)
    const [id, ended] = [visitorOf(one), visitorOf(two)]
    await expire(world.now + 500)
    const { pool } = world
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
      world.now + day,
    ])
    await scoring.query(`insert into scoring.visitor_keys values ('\\xab', $1)`, [id])

    const pruner = startPruner()
    await eventually(async () => {
      const { rowCount } = await pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      expect(rowCount).toBe(1)
    })
    await scoring.query('commit')
    scoring.release()
    await eventually(async () => expect(await idsRead()).not.toContain(ended))
    await pruner.stop()
    expect(await idsRead()).toEqual([id])
    expect(before).toMatchObject({ links: 1 })
    expect(await counts()).toEqual({ keys: (before?.keys ?? 0) + 1, links: 1 })
    expect(await orphans()).toBe(0)
  })

  it('are deleted together with the leftovers of a failed erasure', async () => {
    await visit(one, two)
    const hidden = { visitorIds: [visitorOf(one) ?? ''], continuityIds: [] }
    const scope = { organizationId, environment: 'live' } as const
    await transaction(world.pool, (tx) => stopLinking(tx, { scope, ...hidden }))
    expect(await orphans()).toBe(1)
    await expire(startedAt)
    const pruner = startPruner()
    await eventually(async () => expect(await orphans()).toBe(0))
    await pruner.stop()
    expect(await idsRead()).toEqual([visitorOf(two)])
  })

  it('are dropped by a rebuild or restore before they are deleted', async () => {
    await visit(one)
    const before = world.now + 500
    await visit(two)
    await expire(before)
    const report = await rebuild()
    expect(report).toMatchObject({ visitors: 1, differences: 0, switched: true })
    const rows = await read()
    expect(rows.map(({ visitor_id }) => visitor_id)).toEqual([visitorOf(two)])
    await restartOn(...permanentTopics, 'tidegate.policies.v1')
    expect(await read()).toEqual(rows)
    expect(await keyCount()).toBe(report.keys)
    expect(await orphans()).toBe(0)
  })

  it('start again for a client with their id after a split leaves them only old sessions', async () => {
    await visit(one)
    const before = world.now + 500
    world.now += 2 * day
    const twin = testSession('twin', { ip: one.ip })
    await visit(twin)
    expect(visitorOf(twin)).toBe(visitorOf(one))
    await expire(before)
    world.now += day
    const again = revisit('one-again', one)
    await visit(again)
    expect(visitorOf(again)).toBe(visitorOf(one))
    const others = (await read()).filter(({ visitor_id }) => visitor_id !== visitorOf(one))
    expect(others).toMatchObject([{ sessions: 1 }])
    expect(await rebuild()).toMatchObject({ visitors: 2, differences: 0 })
    expect(await orphans()).toBe(0)
  })
})

it('a visitor with an erased session is rebuilt from its other sessions', async () => {
  const [device = testSession('none'), other = testSession('none')] = devices
  const [again = testSession('none')] = returning
  await visit(device, again, other)
  const [shared, alone] = [visitorOf(device) ?? '', visitorOf(other) ?? '']
  expect(visitorOf(again)).toBe(shared)
  await erase([device, other], { changed_visitor_ids: [shared], erased_visitor_ids: [alone] })
  expect(await read()).toMatchObject([{ visitor_id: shared, sessions: 1 }])
  expect(await rebuild()).toMatchObject({ differences: 0 })
  expect(await statesOf()).toEqual([again.id])

  await world.append(batch(device, { seq: 2 }))
  expect(await statesOf()).toEqual([again.id])
  await restartOn(...permanentTopics, 'tidegate.erasures.v1')
  expect(await read()).toMatchObject([{ visitor_id: shared, sessions: 1 }])
})

it('a split does not bring back an erased visitor', async () => {
  const [one, twin] = [testSession('one'), testSession('twin')]
  const back = revisit('twin-back', twin)
  await visit(one)
  world.now += 10 * 60 * 1000
  await visit(twin)
  world.now += day
  await visit(back)
  const [first, second] = [visitorOf(one) ?? '', visitorOf(back) ?? '']
  expect(first).not.toBe(second)
  await erase([twin, back], { erased_visitor_ids: [second] })
  const links = () => rowsOf('select session_id from scoring.links')
  for (const again of [false, true]) {
    if (again) await restartOn(...permanentTopics, 'tidegate.erasures.v1')
    expect(await read()).toMatchObject([{ visitor_id: first, sessions: 1 }])
    expect(await links()).toEqual([{ session_id: one.id }])
    expect(await rebuild()).toMatchObject({ differences: 0 })
  }
})

async function erase(sessions: TestSession[], visitors: Partial<VisitorErased>): Promise<void> {
  const ids = sessions.map(({ id }) => id)
  const data = visitorErased(ids, visitors)
  const meta = { eventId: data.event_id, time: world.now, organizationId: null, environment: null }
  await world.log.append([
    codec.toRecordWithCause({ type: 'VisitorErased', data }, meta, testCause),
  ])
  await transaction(world.pool, async (tx) => {
    await eraseScoringData(tx, [data])
    await eraseDataKeys(tx, [data])
  })
}

const statesOf = async () =>
  (await rowsOf('select session_id from scoring.sessions order by 1')).map(
    ({ session_id }) => session_id,
  )

it('restores nothing in a new installation, and only once', async () => {
  await world.stop()
  await loseScoring(world.pool)
  expect(await restoreVisitors(sources())).toMatchObject({ sessions: 0, visitors: 0, keys: 0 })
  expect(await restoreVisitors(sources())).toBeUndefined()
})
