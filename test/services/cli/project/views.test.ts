import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { applyBatches } from '../../../../infra/event-store/apply-batch.ts'
import {
  buildOffsets,
  liveBuild,
  migrateHome,
  openPartition,
} from '../../../../infra/event-store/builds.ts'
import type { DomainEvent, EventMeta } from '../../../../infra/event-store/event.ts'
import { pruneBuild } from '../../../../infra/event-store/prune.ts'
import type { EventLog } from '../../../../infra/log/port.ts'
import { eventTopics } from '../../../../schemas/events.ts'
import { endedIn, projectionOf } from '../../../../services/cli/project/projection.ts'
import { loadView, readView, type View } from '../../../../services/cli/project/view.ts'
import { decision, decisions, id } from '../../../projections/world-events.ts'
import { eventually } from '../../../support/eventually.ts'
import { openTestLogs } from '../../../support/logs.ts'
import {
  ensureTopics,
  openProjectionWorld,
  type ProjectionWorld,
  testCause,
} from '../../../support/projections.ts'
import { startView } from '../../../support/views.ts'

const verdicts = 'docs/examples/views/verdicts-by-page.ts'

describe.each(openTestLogs())("a view of one's own on $name", (testLog) => {
  let world: ProjectionWorld
  let log: EventLog

  beforeAll(async () => {
    world = await openProjectionWorld()
    log = await testLog.open()
    await ensureTopics(log)
    await log.ensureTopics([{ topic: eventTopics.VisitorErased, partitions: 1 }])
    await world.append(log, decisions(1, 300, 100))
  })
  afterAll(async () => {
    await world?.close()
    await testLog.cleanup()
  })

  const start = (view: View) =>
    startView({ pool: world.database.pool, log, codec: world.codec }, view)

  const count = async (sql: string) =>
    (await world.database.pool.query<{ n: number }>(`select (${sql})::integer as n`)).rows[0]?.n

  test('has each session once, and goes on where it stopped', async () => {
    const view = await loadView(verdicts)
    const { running } = await start(view)
    const sum = 'select sum(sessions) from view_verdicts_by_page.verdicts_a_day'
    await eventually(async () => expect(await count(sum)).toBe(100))
    await running.stop()
    await world.append(log, [decision(9000)])
    const again = await start(view)
    await eventually(async () => expect(await count(sum)).toBe(101))
    await again.running.stop()
  })

  test('drops what it had for another version, and reads the log again', async () => {
    const pool = world.database.pool
    const viewOf = (version: number, columns: Record<string, string>) =>
      readView('view.ts', {
        default: {
          name: 'changed',
          version,
          events: ['SessionScored'],
          tables: { sessions: { columns: { id: 'text', ...columns }, key: ['id'] } },
          views: { [`ids_${version}`]: 'select id from sessions' },
          handle: ({ data }: { data: { session_id: string; verdict: string } }) => [
            {
              table: 'sessions',
              key: { id: data.session_id },
              to: () => ('verdict' in columns ? { verdict: data.verdict } : {}),
            },
          ],
        },
      })
    const first = await start(viewOf(1, {}))
    await eventually(async () =>
      expect(await count('select count(*) from view_changed.ids_1')).toBeGreaterThanOrEqual(100),
    )
    await first.running.stop()
    await pool.query('create view public.counted as select count(*) from view_changed.ids_1')
    await pool.query(
      'alter default privileges in schema view_changed grant select on tables to pg_read_all_settings',
    )

    const second = await start(viewOf(2, { verdict: 'text' }))
    await eventually(async () =>
      expect(
        await count('select count(verdict) from view_changed.sessions'),
      ).toBeGreaterThanOrEqual(100),
    )
    expect(await count('select count(*) from view_changed.ids_2')).toBeGreaterThanOrEqual(100)
    await second.running.stop()
    const isThere = `select to_regclass('public.counted') is not null or to_regclass('view_changed.ids_1') is not null`
    expect(await count(isThere)).toBe(0)
    const { rows } = await pool.query(
      `select nspname, has_table_privilege('pg_read_all_settings', 'view_changed.ids_2', 'select') as reads
       from pg_namespace where nspname ~ '^view_changed_b' order by 1`,
    )
    expect(rows).toEqual([{ nspname: 'view_changed_b2', reads: true }])
  })

  test('loses the rows of who is erased and of what has ended', async () => {
    const view = await loadView(verdicts)
    const { projection, running } = await start(view)
    const pool = world.database.pool
    const rows = 'select count(*) from view_verdicts_by_page.page_sessions'
    await eventually(async () => expect(await count(rows)).toBe(101))
    await world.append(log, [erasureOf(id('sid', 1))])
    await eventually(async () => expect(await count(rows)).toBe(100))
    await world.append(log, [
      { ...decision(9001), event: erased(decision(9001).event, id('sid', 1)) },
    ])
    await world.append(log, [decision(9002), expiry(4_000_000_000_000)])
    await eventually(async () =>
      expect(await count('select count(*) from view_verdicts_by_page.page_sessions')).toBe(101),
    )
    const findEnded = endedIn(projection)
    await eventually(async () => expect(await findEnded(pool)).toHaveLength(1))
    const build = await liveBuild(pool, projection.name, projection.home)
    const prune = projection.createPrune?.()
    if (!build || !prune) throw new Error('the view has no build')
    await pruneBuild({ pool, build, prune, ended: await findEnded(pool) })
    expect(await count(rows)).toBe(0)
    expect((await buildOffsets(pool, build)).length).toBeGreaterThan(1)
    // Neither of the erasure and the expiry, nor of what came of an erased session.
    expect(await count(`select count(*) from ${build.schema}.own_events`)).toBe(302)
    await running.stop()
  })

  test('stands still at the event of which its handler throws, and says nothing of what it has', async () => {
    const view = readView('view.ts', {
      default: {
        name: 'thrower',
        version: 1,
        events: ['SessionScored'],
        tables: { days: { columns: { day: 'bigint', sessions: 'integer' }, key: ['day'] } },
        handle() {
          throw new TypeError('203.0.113.9')
        },
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

  test('counts each event once where its rows are counters', async () => {
    const view = readView('view.ts', {
      default: {
        name: 'counter',
        version: 1,
        events: ['SessionScored'],
        tables: {
          verdicts: { columns: { verdict: 'text', decisions: 'integer' }, key: ['verdict'] },
        },
        handle: ({ data }: { data: { verdict: string } }) => [
          {
            table: 'verdicts',
            key: { verdict: data.verdict },
            to: (row?: { decisions: number }) => ({ decisions: (row?.decisions ?? 0) + 1 }),
          },
        ],
      },
    })
    const { running } = await start(view)
    const sum = 'select sum(decisions) from view_counter.verdicts'
    await eventually(async () => expect(await count(sum)).toBeGreaterThanOrEqual(301))
    await running.stop()
  })

  test('has the last of two decisions of one moment, whichever id is greater', async () => {
    const view = { ...(await loadView(verdicts)), name: 'ties' }
    const moment = { session: 9100, evaluated_at: 5_000_000 }
    await world.append(log, [
      decision(9111, { ...moment, verdict: 'inconclusive' }),
      decision(9110, { ...moment, verdict: 'bot' }),
    ])
    const { running } = await start(view)
    const bots = `select count(*) from view_ties.page_sessions where session_id = '${id('sid', 9100)}' and verdict = 'bot'`
    await eventually(async () => expect(await count(bots)).toBe(1))
    await running.stop()
  })

  test('has null for what of a closed decision would be made up', async () => {
    const seen: unknown[] = []
    const view = readView('view.ts', {
      default: {
        name: 'closed',
        version: 1,
        events: ['SessionScored'],
        tables: { rows: { columns: { id: 'text' }, key: ['id'] } },
        handle({ facts }: { facts: unknown }) {
          seen.push(facts)
          return []
        },
      },
    })
    const projection = projectionOf(view, 'view.ts')
    const { event, meta } = decision(9003)
    const { value } = world.codec.toCausedRecord(event, meta, testCause)
    const position = { topic: eventTopics.SessionScored, partition: 0, offset: 0 }
    await migrateHome(world.database.pool, projection)
    const live = await liveBuild(world.database.pool, projection.name, projection.home)
    if (!live) throw new Error('the view has no build')
    const batch = {
      topic: position.topic,
      partition: 0,
      end: 1,
      expected: 0,
      timeBefore: () => 0,
      events: [{ ...event, meta, value, position, unreadable: id('sid', 9003) }],
    }
    const { pool } = world.database
    await openPartition(pool, live, position)
    await applyBatches({ pool, projection, build: live, batches: [batch] })
    expect(seen).toMatchObject([
      {
        user_agent: null,
        network: null,
        attribution: null,
        ip_address: null,
        scoring_version: expect.any(String),
      },
    ])
  })

  test('stands still at a record that cannot be read, and names it', async () => {
    const headers = { event_id: id('evt', 9200), event_type: 'SessionScored', event_time: '1' }
    await log.append([
      {
        topic: eventTopics.SessionScored,
        key: id('sid', 1),
        value: Buffer.from('not ours'),
        headers,
      },
    ])
    const { running, stops } = await start(await loadView(verdicts))
    await eventually(async () => expect(stops.length).toBeGreaterThan(0))
    expect(String(stops[0]?.error)).toMatch(/the record cannot be read \(\w+\), event evt_/)
    expect(String(stops[0]?.error)).not.toContain('not ours')
    await running.stop()
  })
})

test('refuses a name that a build of another view would have', () => {
  const tables = { rows: { columns: { id: 'text' }, key: ['id'] } }
  const view = { name: 'a_b1', version: 1, events: ['SessionScored'], tables, handle: () => [] }
  expect(() => readView('view.ts', { default: view })).toThrow(/name: .*build of another view/)
})

test('says by field what a file lacks', () => {
  const wrong = { name: 'My View', version: 0, events: ['Nothing'], tables: {}, handle: 1 }
  expect(() => readView('my-view.ts', { default: wrong })).toThrow(
    /my-view.ts is no view:.*name:.*handle: expected a function/s,
  )
  expect(() => readView('my-view.ts', {})).toThrow(/default export/)
})

type Written = { event: DomainEvent; meta: EventMeta }

function erased(event: DomainEvent, session_id: string): DomainEvent {
  if (event.type !== 'SessionScored') throw new Error('no decision')
  return { ...event, data: { ...event.data, session_id } }
}

function erasureOf(session: string): Written {
  const { meta } = decision(9100)
  return {
    meta: { ...meta, eventId: id('evt', 9100) },
    event: {
      type: 'VisitorErased',
      data: {
        event_id: id('evt', 9100),
        visitor_id: id('vid', 1),
        user_digest: null,
        counts: {},
        erasure_id: id('ers', 1),
        organization_id: id('org', 1),
        environment: 'live',
        session_ids: [session],
        erased_visitor_ids: [],
        changed_visitor_ids: [],
        erased_at: 1_760_000_000_000,
      },
    },
  }
}

function expiry(before: number): Written {
  const { meta } = decision(9101)
  const others = { decisions_before: null, visitors_before: null, webhooks_before: null }
  return {
    meta: { ...meta, eventId: id('evt', 9101) },
    event: {
      type: 'OrganizationDataExpired',
      data: {
        organization_id: id('org', 1),
        sessions_before: before,
        ...others,
        expired_at: before,
      },
    },
  }
}
