import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Applied } from '../../../infra/event-store/applied.ts'
import {
  type Build,
  createBuild,
  createIndexes,
  liveBuild,
  liveOffsets,
  makeLive,
} from '../../../infra/event-store/builds.ts'
import type { DomainEvent } from '../../../infra/event-store/codec.ts'
import { startLoader } from '../../../infra/event-store/loader.ts'
import {
  type RebuildOptions,
  type RebuildReport,
  rebuild,
} from '../../../infra/event-store/rebuild.ts'
import { noteStage } from '../../../infra/event-store/unfinished.ts'
import type { EventLog, Position } from '../../../infra/log/port.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import { decision, decisions, id } from '../../projections/world-events.ts'
import { visitorErased } from '../../support/erased.ts'
import { openTestLogs } from '../../support/logs.ts'
import { noSkips } from '../../support/no-skips.ts'
import {
  ensureTopics,
  openProjectionWorld,
  type ProjectionWorld,
  silent,
} from '../../support/projections.ts'
import { metaOf } from '../../support/session-scored.ts'

const sumOf = (positions: Position[]) => positions.reduce((sum, { offset }) => sum + offset, 0)

describe.each(openTestLogs())('after a kill a rebuild on $name', (testLog) => {
  let world: ProjectionWorld
  let log: EventLog
  let applied: Applied
  let next = 0

  beforeAll(async () => {
    world = await openProjectionWorld()
    log = await testLog.open()
    await ensureTopics(log)
    applied = await world.openApplied()
    await world.run(log, sessionsProjection, { applied })
    await decide(300)
  })
  afterAll(async () => {
    await world?.close()
    await testLog.cleanup()
  })
  afterEach(async () => {
    const { rows } = await world.database.pool.query(
      `select count(*)::int as n from pg_namespace where nspname like 'sessions_b%'`,
    )
    expect(rows[0].n, 'schemas of builds').toBe(1)
  })

  /** Decisions of 100 sessions, a few each, that the live build has then. */
  async function decide(count: number): Promise<void> {
    const placed = await world.append(log, decisions(next, count, 100))
    next += count
    await applied.waitFor('sessions', placed)
  }

  async function erase(session: number): Promise<void> {
    const data = visitorErased([id('sid', session)], {
      organization_id: id('org', 1),
      event_id: id('evt', 900_000 + session),
      changed_visitor_ids: [id('vid', session % 7)],
    })
    const event: DomainEvent = { type: 'VisitorErased', data }
    await applied.waitFor('sessions', await world.append(log, [{ event, meta: metaOf(data) }]))
  }

  function run(options: Partial<RebuildOptions> = {}): Promise<RebuildReport> {
    const { codec, database } = world
    const about = { projection: sessionsProjection, log, codec, logger: silent, skips: noSkips }
    return rebuild({ ...about, pool: database.pool, ...options })
  }

  /** What a killed rebuild leaves that had loaded all there was, and made the indexes or not. */
  async function leave(stage: 'rows' | 'indexes'): Promise<Build> {
    const { database, codec } = world
    const { pool } = database
    const source = { projection: sessionsProjection, log }
    const build = await transaction(pool, async (tx) => {
      const made = await createBuild(tx, sessionsProjection, 'building')
      await noteStage(tx, made, 'rows', source)
      return made
    })
    const live = await liveBuild(pool, 'sessions')
    if (!live) throw new Error('no live build')
    const about = { ...source, codec, logger: silent, skips: noSkips, onEvents: () => {} }
    const loader = await startLoader({ ...about, pool, build, live })
    await loader.waitFor(await liveOffsets(pool, 'sessions'))
    await loader.stop()
    if (stage === 'indexes')
      await transaction(pool, async (tx) => {
        await createIndexes(tx, sessionsProjection, build)
        await noteStage(tx, build, 'indexes', source)
      })
    return build
  }

  test.each(['rows', 'indexes'] as const)(
    'goes on with the build that has its %s, and what was erased meanwhile goes from it',
    async (stage) => {
      const { build } = await leave(stage)
      const had = sumOf(await liveOffsets(world.database.pool, 'sessions'))
      await erase(stage === 'rows' ? 7 : 8)
      await decide(50)
      const told: Position[][] = []
      const report = await run({ onResume: (from) => told.push(from) })
      expect(report).toMatchObject({ build, equal: true, switched: true, events: 51 })
      expect(sumOf(report.resumedFrom)).toBe(had)
      expect(told).toEqual([report.resumedFrom])
      const { rows } = await world.database.pool.query(
        'select session_id from read.sessions where session_id = any($1)',
        [[id('sid', 7), id('sid', 8)]],
      )
      expect(rows).toHaveLength(stage === 'rows' ? 1 : 0)
      const { rows: indexes } = await world.database.pool.query<{ how: string }>(
        `select regexp_replace(indexdef, ' INDEX \\S+ ', ' ') as how from pg_indexes where schemaname = $1`,
        [(await liveBuild(world.database.pool, 'sessions'))?.schema],
      )
      expect(new Set(indexes.map(({ how }) => how)).size).toBe(indexes.length)
    },
  )

  test('goes on after a time-out of the database, too', async () => {
    const { pool } = world.database
    const findEnded = async () =>
      transaction(pool, async (tx) => {
        await tx.query('set local statement_timeout = 1')
        await tx.query('select pg_sleep(60)')
        return []
      })
    await expect(run({ findEnded })).rejects.toMatchObject({ code: '57014' })
    const had = await liveOffsets(pool, 'sessions')
    const report = await run()
    expect(report).toMatchObject({ equal: true, switched: true, events: 0 })
    expect(sumOf(report.resumedFrom)).toBe(sumOf(had))
  })

  test('begins at offset 0 when it is told to, and when it makes other tables', async () => {
    const { build } = await leave('rows')
    const told = await run({ fromScratch: true })
    expect(told).toMatchObject({ build: build + 1, equal: true, resumedFrom: [] })
    await leave('rows')
    const { ddl } = sessionsProjection
    const other = {
      ...sessionsProjection,
      ddl: ddl.replace('page_text bytea', 'added integer, page_text bytea'),
    }
    const changed = await run({ projection: other, acceptDifferences: true })
    expect(changed).toMatchObject({ switched: true, resumedFrom: [] })
    expect(await run({ acceptDifferences: true })).toMatchObject({
      switched: true,
      resumedFrom: [],
    })
  })

  test('begins at offset 0 on another log', async () => {
    await leave('rows')
    const other: EventLog = { ...log, identity: async () => 'another log' }
    expect(await run({ log: other })).toMatchObject({ equal: true, resumedFrom: [] })
  })

  test('drops the old build that a kill right after the switch has left', async () => {
    const { pool } = world.database
    const build = await leave('indexes')
    await transaction(pool, (tx) => makeLive(tx, sessionsProjection, build))
    await applied.waitFor('sessions', await world.append(log, [decision(9000)]))
    expect(await run()).toMatchObject({ equal: true, switched: true, resumedFrom: [] })
  })
})
