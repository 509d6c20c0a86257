import { afterAll, describe, expect, test } from 'vitest'
import { applyBatches } from '../../../../infra/event-store/apply-batch.ts'
import {
  findLiveBuild,
  initStartOffset,
  loadBuildOffsets,
  migrateHome,
} from '../../../../infra/event-store/builds.ts'
import { pruneBuild } from '../../../../infra/event-store/prune.ts'
import { eventTopics } from '../../../../schemas/events.ts'
import { createFindCutoffs, projectionOf } from '../../../../services/cli/project/projection.ts'
import { loadView, parseView, type View } from '../../../../services/cli/project/view.ts'
import { decision, decisions, id } from '../../../projections/world-events.ts'
import { visitorErased } from '../../../support/erased.ts'
import { eventually } from '../../../support/eventually.ts'
import { openTestLogs } from '../../../support/logs.ts'
import { ensureTopics, openProjectionWorld, testCause } from '../../../support/projections.ts'
import { startView } from './start-view.ts'

const verdicts = 'docs/examples/views/verdicts-by-page.ts'

describe.each(openTestLogs())('a custom view on $name', async (testLog) => {
  const world = await openProjectionWorld()
  const log = await testLog.open()
  await ensureTopics(log)
  await log.ensureTopics([{ topic: eventTopics.VisitorErased, partitions: 1 }])
  await world.append(log, decisions(1, 300, 100))
  afterAll(async () => {
    await world.close()
    await testLog.cleanup()
  })

  const start = (view: View) =>
    startView({ pool: world.database.pool, log, codec: world.codec }, view)

  const count = async (sql: string) =>
    (await world.database.pool.query<{ n: number }>(`select (${sql})::integer as n`)).rows[0]?.n
  const counts = (sql: string, n: number) =>
    eventually(async () => expect(await count(sql)).toBe(n))
  const countsAtLeast = (sql: string, n: number) =>
    eventually(async () => expect(await count(sql)).toBeGreaterThanOrEqual(n))

  test('counts each session once, and resumes after a restart', async () => {
    const view = await loadView(verdicts)
    const { running } = await start(view)
    const sum = 'select sum(sessions) from view_verdicts_by_page.verdicts_a_day'
    await counts(sum, 100)
    await running.stop()
    await world.append(log, [decision(9000)])
    const again = await start(view)
    await counts(sum, 101)
    await again.running.stop()
  })

  test('drops the tables of another version, and reads the log again', async () => {
    const pool = world.database.pool
    const changed = (version: number, columns: Record<string, string>) =>
      viewOf('changed', {
        version,
        tables: { sessions: { columns: { id: 'text', ...columns }, key: ['id'] } },
        views: { [`ids_${version}`]: 'select id from sessions' },
        handle: ({ data }: Scored) => {
          const to = () => ('verdict' in columns ? { verdict: data.verdict } : {})
          return [{ table: 'sessions', key: { id: data.session_id }, to }]
        },
      })
    const first = await start(changed(1, {}))
    await countsAtLeast('select count(*) from view_changed.ids_1', 100)
    await first.running.stop()
    await pool.query(`create view public.counted as select count(*) from view_changed.ids_1;
      alter default privileges in schema view_changed grant select on tables to pg_read_all_settings`)
    const second = await start(changed(2, { verdict: 'text' }))
    await countsAtLeast('select count(verdict) from view_changed.sessions', 100)
    await countsAtLeast('select count(*) from view_changed.ids_2', 100)
    await second.running.stop()
    const isThere = `select to_regclass('public.counted') is not null or to_regclass('view_changed.ids_1') is not null`
    expect(await count(isThere)).toBe(0)
    const { rows } = await pool.query(
      `select nspname, has_table_privilege('pg_read_all_settings', 'view_changed.ids_2', 'select') as reads
       from pg_namespace where nspname ~ '^view_changed_b' order by 1`,
    )
    expect(rows).toEqual([{ nspname: 'view_changed_b2', reads: true }])
  })

  test('deletes the rows of erased and expired sessions', async () => {
    const view = await loadView(verdicts)
    const { projection, running } = await start(view)
    const pool = world.database.pool
    const rows = 'select count(*) from view_verdicts_by_page.page_sessions'
    await counts(rows, 101)
    await world.append(log, [erasureOf(id('sid', 1))])
    await counts(rows, 100)
    // Later decisions of an erased session are skipped.
    await world.append(log, [decision(9001, { session: 1 }), decision(9002), expiry(farAhead)])
    await counts(rows, 101)
    const findCutoffs = createFindCutoffs(projection)
    await eventually(async () => expect(await findCutoffs(pool)).toHaveLength(1))
    const build = await findLiveBuild(pool, projection.name, projection.home)
    const prune = projection.createPrune?.()
    if (!build || !prune) throw new Error('the view has no build')
    await pruneBuild({ pool, build, prune, cutoffs: await findCutoffs(pool) })
    expect(await count(rows)).toBe(0)
    expect((await loadBuildOffsets(pool, build)).length).toBeGreaterThan(1)
    // Excludes the erasure, the expiry, and the events of the erased session.
    expect(await count(`select count(*) from ${build.schema}.own_events`)).toBe(302)
    await running.stop()
  })

  test('stops at the event whose handler throws, without revealing its data', async () => {
    const view = viewOf('thrower', {
      tables: { days: { columns: { day: 'bigint', sessions: 'integer' }, key: ['day'] } },
      handle() {
        throw new TypeError('203.0.113.9')
      },
    })
    const { running, stops } = await start(view)
    await eventually(async () => expect(stops.length).toBeGreaterThan(0))
    const [stop] = stops
    expect(stop?.at.topic).toBe(eventTopics.SessionScored)
    expect(String(stop?.error)).toMatch(/the handler threw TypeError.*event evt_/)
    expect(String(stop?.error)).not.toContain('203.0.113')
    await running.stop()
  })

  test('applies each event exactly once', async () => {
    const view = viewOf('counter', {
      tables: {
        verdicts: { columns: { verdict: 'text', decisions: 'integer' }, key: ['verdict'] },
      },
      handle({ data: { verdict } }: Scored) {
        const to = (row?: { decisions: number }) => ({ decisions: (row?.decisions ?? 0) + 1 })
        return [{ table: 'verdicts', key: { verdict }, to }]
      },
    })
    const { running } = await start(view)
    const ends = await log.endPositions(eventTopics.SessionScored)
    const appended = ends.reduce((sum, { offset }) => sum + offset, 0)
    await counts('select sum(decisions) from view_counter.verdicts', appended)
    await running.stop()
  })

  test('keeps the last of two decisions with the same time, whichever id is greater', async () => {
    const view = { ...(await loadView(verdicts)), name: 'ties' }
    const moment = { session: 9100, evaluated_at: 5_000_000 }
    await world.append(log, [
      decision(9111, { ...moment, verdict: 'inconclusive' }),
      decision(9110, { ...moment, verdict: 'bot' }),
    ])
    const { running } = await start(view)
    const bots = `select count(*) from view_ties.page_sessions where session_id = '${id('sid', 9100)}' and verdict = 'bot'`
    await counts(bots, 1)
    await running.stop()
  })

  test('gets null for encrypted fields without the data key', async () => {
    const seen: unknown[] = []
    const view = viewOf('closed', {
      tables: { rows: { columns: { id: 'text' }, key: ['id'] } },
      handle({ facts }: { facts: unknown }) {
        seen.push(facts)
        return []
      },
    })
    const projection = projectionOf(view, 'view.ts')
    const { event, meta } = decision(9003)
    const { value } = world.codec.toRecordWithCause(event, meta, testCause)
    const position = { topic: eventTopics.SessionScored, partition: 0, offset: 0 }
    const { pool } = world.database
    await migrateHome(pool, projection)
    const live = await findLiveBuild(pool, projection.name, projection.home)
    if (!live) throw new Error('the view has no build')
    const batch = {
      topic: position.topic,
      partition: 0,
      end: 1,
      expected: 0,
      timeBefore: () => 0,
      events: [{ ...event, meta, value, position, unreadable: id('sid', 9003) }],
    }
    await initStartOffset(pool, live, position)
    await applyBatches({ pool, projection, build: live, batches: [batch] })
    const closed = { user_agent: null, network: null, attribution: null, ip_address: null }
    expect(seen).toMatchObject([{ ...closed, scoring_version: expect.any(String) }])
  })

  test('stops at an unreadable record, and names it', async () => {
    const headers = { event_id: id('evt', 9200), event_type: 'SessionScored', event_time: '1' }
    const place = { topic: eventTopics.SessionScored, key: id('sid', 1) }
    await log.append([{ ...place, value: Buffer.from('not ours'), headers }])
    const { running, stops } = await start(await loadView(verdicts))
    await eventually(async () => expect(stops.length).toBeGreaterThan(0))
    expect(String(stops[0]?.error)).toMatch(/cannot read the record \(\w+\), event evt_/)
    expect(String(stops[0]?.error)).not.toContain('not ours')
    await running.stop()
  })
})

test('rejects a name that a build of another view would have', () => {
  const tables = { rows: { columns: { id: 'text' }, key: ['id'] } }
  const readIt = () => viewOf('a_b1', { tables, handle: () => [] })
  expect(readIt).toThrow(/name: .*_b and digits are reserved/)
})

test('lists the invalid fields of a view', () => {
  const wrong = { version: 0, events: ['Nothing'], tables: {}, handle: 1 }
  expect(() => viewOf('My View', wrong)).toThrow(
    /view.ts is not a valid view:.*name:.*version:.*events.*tables:.*handle: expected a function/s,
  )
  expect(() => parseView('my-view.ts', {})).toThrow(/default export/)
})

interface Scored {
  data: { session_id: string; verdict: string }
}

/** Returns a view that handles decisions. */
const viewOf = (name: string, parts: object) =>
  parseView('view.ts', { default: { name, version: 1, events: ['SessionScored'], ...parts } })

function erasureOf(session: string) {
  const event_id = id('evt', 9100)
  const data = visitorErased([session], { event_id, organization_id: id('org', 1) })
  const { meta } = decision(9100)
  return { meta: { ...meta, eventId: event_id }, event: { type: 'VisitorErased', data } as const }
}

const farAhead = 4_000_000_000_000

function expiry(before: number) {
  const { meta } = decision(9101)
  const others = { decisions_before: null, visitors_before: null, webhooks_before: null }
  const time = { sessions_before: before, expired_at: before }
  const data = { organization_id: id('org', 1), ...time, ...others }
  return { meta, event: { type: 'OrganizationDataExpired', data } as const }
}
