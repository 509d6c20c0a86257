import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import {
  type Build,
  createBuild,
  createIndexes,
  dropBuild,
  findLiveBuild,
  findUnfinishedBuilds,
  loadBuildOffsets,
  loadLiveOffsets,
  makeLive,
} from '../../../infra/event-store/builds.ts'
import { startLoader } from '../../../infra/event-store/loader.ts'
import type { Projection } from '../../../infra/event-store/projection.ts'
import { loadPartitionShare, rebuild } from '../../../infra/event-store/rebuild.ts'
import { type Position, partitionName, type TopicPartition } from '../../../infra/log/port.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import { findSession } from '../../../projections/sessions/queries.ts'
import { decision, decisions, id } from '../../projections/world-events.ts'
import { eventually } from '../../support/eventually.ts'
import { openTestLogs } from '../../support/logs.ts'
import { noSkips } from '../../support/no-skips.ts'
import { ensureTopics, openProjectionWorld, silent } from '../../support/projections.ts'

const projection = sessionsProjection
const switched = { equal: true, switched: true }
const scope = { organizationId: id('org', 1), environment: 'live' } as const

describe.each(openTestLogs())('rebuild on $name', async (testLog) => {
  const world = await openProjectionWorld()
  const log = await testLog.open()
  await ensureTopics(log)
  const applied = await world.openApplied()
  const running = await world.run(log, projection, { applied })
  const appended = await world.append(log, decisions(1, 300, 100))
  await applied.waitFor('sessions', appended)
  afterAll(async () => {
    await running.stop()
    await world.close()
    await testLog.cleanup()
  })
  afterEach(async () => {
    const { rows } = await world.database.pool.query(
      `select count(*)::int as n from information_schema.schemata where schema_name like 'sessions_b%'`,
    )
    expect(rows[0].n, 'schemas of builds').toBe(1)
  })

  const sources = () => {
    const { codec, database } = world
    return { projection, log, pool: database.pool, codec, logger: silent, skips: noSkips }
  }
  const run = (some: Partial<Parameters<typeof rebuild>[0]> = {}) =>
    rebuild({ ...sources(), ...some })

  async function live(): Promise<Build> {
    const build = await findLiveBuild(world.database.pool, 'sessions')
    if (!build) throw new Error('no live build')
    return build
  }

  /** Creates a build with all records, and continues to load it. */
  async function startBuild() {
    const { pool } = world.database
    const build = await transaction(pool, (tx) => createBuild(tx, projection, 'building'))
    const loader = await startLoader({ ...sources(), build, live: await live() })
    await loader.waitFor(await loadBuildOffsets(pool, await live()))
    return { build, loader }
  }

  const schemas = async () =>
    (
      await world.database.pool.query<{ name: string }>(
        `select nspname as name from pg_namespace where nspname like 'sessions_b%'`,
      )
    ).rows.map(({ name }) => name)

  test('equals the live build, and readers and runners switch to it', async () => {
    const before = await live()
    const report = await run()
    expect(report).toMatchObject({ projection: 'sessions', ...switched, records: 300 })
    expect(Object.fromEntries(report.tables.map(({ table, rows }) => [table, rows]))).toEqual({
      sessions: 100,
      decisions: 300,
      client_user_changes: 0,
      session_marks: 0,
      visitors: 7,
      search_texts: 3,
      session_events: 100,
      visitor_sessions: 100,
    })
    expect((await live()).build).toBe(before.build + 1)
    await applied.waitFor('sessions', await world.append(log, [decision(9000)]))
    expect(await findSession(world.database.pool, scope, id('sid', 9000))).toBeDefined()
  })

  test('reapplies records that the new build lost in a database crash', async () => {
    const { pool } = world.database
    const { build, loader } = await startBuild()
    await pool.query(
      projection.tables.map((table) => `truncate ${build.schema}.${table}`).join('; '),
    )
    await pool.query(`update tidegate.projection_offsets set next_offset = 0 where build = $1`, [
      build.build,
    ])
    await applied.waitFor('sessions', await world.append(log, decisions(15_000, 60, 60)))
    await eventually(async () => expect(await counts(build.schema)).toEqual(await counts('read')))
    await loader.stop()
    await transaction(pool, (tx) => dropBuild(tx, build))
  })

  /** Leaves a build behind, as a rebuild does that is killed before it compares. */
  async function abandonBuild(): Promise<Build> {
    const { build, loader } = await startBuild()
    await loader.stop()
    await transaction(world.database.pool, (tx) => createIndexes(tx, projection, build))
    return build
  }

  test('drops the builds of a killed rebuild', async () => {
    const { pool } = world.database
    await abandonBuild()
    expect(await run()).toMatchObject(switched)
    expect(await schemas()).toHaveLength(1)
    const build = await abandonBuild()
    await transaction(pool, (tx) => makeLive(tx, projection, build))
    expect(await schemas()).toHaveLength(2)
    expect(await run()).toMatchObject(switched)
    expect(await schemas()).toEqual([(await live()).schema])
  })

  test('is equal when several processes load shares of it', async () => {
    let loaded = 0
    const report = await run({
      async loadInOtherProcesses(target) {
        const load = async (index: number) => {
          await loadPartitionShare(sources(), { index, count: 3 })
          loaded += 1
        }
        await Promise.all([0, 1, 2].map(load))
        const [next] = await findUnfinishedBuilds(world.database.pool, 'sessions')
        if (!next) throw new Error('nothing is being built')
        expect(await loadBuildOffsets(world.database.pool, next)).toEqual(
          expect.arrayContaining(target.map((at) => expect.objectContaining(at))),
        )
      },
    })
    expect(loaded).toBe(3)
    expect(report).toMatchObject(switched)
  })

  test('is dropped if loading a share fails', async () => {
    const failing = run({
      loadInOtherProcesses: () => Promise.reject(new Error('a worker was killed')),
    })
    await expect(failing).rejects.toThrow('a worker was killed')
    expect(await schemas()).toEqual([(await live()).schema])
  })

  async function counts(schema: string): Promise<unknown> {
    const one = (table: string) => `(select count(*) from ${schema}.${table}) as ${table}`
    return (await world.database.pool.query(`select ${projection.tables.map(one).join(', ')}`))
      .rows[0]
  }

  test.each(['40P01', '40001'])('survives temporary database errors: %s', async (code) => {
    let attempts = 0
    const apply: Projection['apply'] = (tx, events) => {
      // Fails for all partitions together, for a single one, and for its first event.
      if (attempts++ < 3) throw Object.assign(new Error('the database is busy'), { code })
      return projection.apply(tx, events)
    }
    expect(await run({ projection: { ...projection, apply } })).toMatchObject(switched)
    expect(attempts).toBeGreaterThan(3)
  })

  test('is equal under concurrent appends and reads', async () => {
    let stopped = false
    const arrivals: Position[] = []
    const reads: unknown[] = []
    const lost: unknown[] = []
    const compare = async () => {
      const statuses = running.status()
      const stored = await loadLiveOffsets(world.database.pool, 'sessions')
      const storedOf = (place: TopicPartition) =>
        stored.find((at) => partitionName(at) === partitionName(place))?.offset ?? 0
      lost.push(...statuses.filter((status) => storedOf(status) < status.nextOffset))
    }
    const until = async (step: (round: number) => Promise<unknown>) => {
      for (let round = 0; !stopped; round++) await step(round).then(() => delay(5))
    }
    // Waits for the projection, so that little is left to apply at the end, even on a slow machine.
    const arrive = async (first: number) => {
      const placed = await world.append(log, decisions(first, 10, 300))
      arrivals.push(...placed)
      await applied.waitFor('sessions', placed, { timeoutMs: 20_000 })
    }
    const traffic = [
      ...[0, 1, 2].map((writer) => until((round) => arrive(20_000 + 10 * (3 * round + writer)))),
      until(async () => reads.push(await findSession(world.database.pool, scope, id('sid', 7)))),
      until(compare),
    ]
    const report = await run().finally(() => {
      stopped = true
      return Promise.all(traffic)
    })
    expect(report).toMatchObject(switched)
    expect(lost, 'partitions that seem to have gone back').toEqual([])
    expect(reads.length).toBeGreaterThan(0)
    expect(reads.every((row) => row !== undefined)).toBe(true)
    const { rows } = await world.database.pool.query(
      `select count(*)::int as n from read.decisions where event_id >= '${id('evt', 20_000)}'`,
    )
    expect(rows[0].n).toBe(arrivals.length)
  })

  test('reports differing rows, and switches only with acceptDifferences', async () => {
    const { schema, build } = await live()
    await world.database.pool.query(
      `update ${schema}.sessions set risk_score = 101 where session_id = '${id('sid', 7)}'`,
    )
    const report = await run()
    expect(report).toMatchObject({ equal: false, switched: false })
    const sessions = report.tables.find(({ table }) => table === 'sessions')
    expect(sessions?.differences.map(({ side }) => side)).toEqual(['live', 'new'])
    expect(sessions?.differences[0]?.row).toContain(id('sid', 7))
    expect(report.tables.filter(({ equal }) => !equal).map(({ table }) => table)).toEqual([
      'sessions',
    ])
    expect((await live()).build).toBe(build)
    expect(await run({ acceptDifferences: true })).toMatchObject({ equal: false, switched: true })
    expect(await run()).toMatchObject(switched)
  })

  test('runs one at a time, and drops a build that it cannot fill', async () => {
    const both = await Promise.allSettled([run(), run()])
    expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    const apply = () => Promise.reject(new Error('this handler has a defect'))
    await expect(run({ projection: { ...projection, apply } })).rejects.toThrow(
      /new build failed at/,
    )
  })

  test('a runner of another version than the live build waits for a rebuild', async () => {
    await running.stop()
    const next: Projection = {
      ...projection,
      version: projection.version + 1,
      ddl: projection.ddl.replace(
        'page_text bytea',
        'added integer not null default 7, page_text bytea',
      ),
    }
    const newRunner = await world.run(log, next, { applied })
    const waiting = await world.append(log, [decision(30_000)])
    const late = applied.waitFor('sessions', waiting, { timeoutMs: 300 })
    await expect(late).rejects.toMatchObject({ code: 'service.unavailable' })
    expect(await run({ projection: next })).toMatchObject({ equal: false, switched: false })
    expect(await run({ projection: next, acceptDifferences: true })).toMatchObject({
      equal: false,
      switched: true,
    })
    await applied.waitFor('sessions', waiting, { timeoutMs: 20_000 })
    const { rows } = await world.database.pool.query(`select distinct added from read.sessions`)
    expect(rows).toEqual([{ added: 7 }])
    await newRunner.stop()
  })
})
