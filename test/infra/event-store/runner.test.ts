import { afterAll, afterEach, describe, expect, test } from 'vitest'
import type { ChangedIds } from '../../../infra/event-store/applied.ts'
import { findLiveBuild } from '../../../infra/event-store/builds.ts'
import type { Projection } from '../../../infra/event-store/projection.ts'
import type { Position } from '../../../infra/log/port.ts'
import { runAsOneStatement } from '../../../infra/postgres/arrays.ts'
import { organizationsProjection } from '../../../projections/organizations/projection.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import { findSession } from '../../../projections/sessions/queries.ts'
import { decision, decisions, id } from '../../projections/world-events.ts'
import { eventually } from '../../support/eventually.ts'
import { openTestLogs } from '../../support/logs.ts'
import { ensureTopics, openProjectionWorld, silent } from '../../support/projections.ts'

const topic = 'tidegate.sessions.v1'
const scope = { organizationId: id('org', 1), environment: 'live' } as const

describe.each(openTestLogs())('$name', async (testLog) => {
  const world = await openProjectionWorld()
  const log = await testLog.open()
  await ensureTopics(log)
  afterAll(async () => {
    await world.close()
    await testLog.cleanup()
  })

  // A failed test must not leave its runner in the next test's group.
  afterEach(() => world.stopRunners())

  const decisionCount = async (where = 'true') => {
    const { rows } = await world.database.pool.query(
      `select count(*)::int as n from read.decisions where ${where}`,
    )
    return rows[0].n
  }

  test('appended events are readable when waitFor resolves, in any process', async () => {
    const here = await world.openApplied()
    const elsewhere = await world.openApplied()
    const running = await world.run(log, sessionsProjection, { applied: here })
    const positions = await world.append(log, decisions(1, 40))
    await Promise.all([here, elsewhere].map((applied) => applied.waitFor('sessions', positions)))
    expect(await findSession(world.database.pool, scope, id('sid', 7))).toBeDefined()
    expect(await decisionCount()).toBe(40)
    expect(running.status().every((partition) => partition.stopped === null)).toBe(true)
  })

  test('every process is notified of changed ids before waitFor resolves', async () => {
    const here = await world.openApplied()
    const elsewhere = await world.openApplied()
    const heard = new Map<typeof here, ChangedIds[]>()
    for (const applied of [here, elsewhere])
      applied.onChange('organizations', (changedIds) =>
        heard.set(applied, [...(heard.get(applied) ?? []), changedIds]),
      )
    await world.run(log, organizationsProjection, { applied: here })
    const organization_id = id('org', 7)
    const about = { time: 1, organizationId: organization_id, environment: null }
    const created = { organization_id, name: 'A', slug: 'a', created_at: 1 }
    const positions = await world.append(log, [
      {
        event: { type: 'OrganizationCreated', data: created },
        meta: { ...about, eventId: id('evt', 9001) },
      },
      {
        event: { type: 'OrganizationSuspended', data: { organization_id, suspended_at: 2 } },
        meta: { ...about, eventId: id('evt', 9002) },
      },
    ])
    const expectNotified = async (applied: typeof here) => {
      await applied.waitFor('organizations', positions)
      const changedIds = heard.get(applied)?.flat() ?? []
      expect(changedIds.some((one) => one === undefined || one === organization_id)).toBe(true)
    }
    await Promise.all([expectNotified(here), expectNotified(elsewhere)])
  })

  test('a restarted runner resumes at the committed offset', async () => {
    const applied = await world.openApplied()
    const before = await decisionCount()
    const positions = await world.append(log, decisions(100, 20))
    const seen: Position[] = []
    applied.onAdvance('sessions', (next) => seen.push(next))
    await world.run(log, sessionsProjection, { applied })
    await applied.waitFor('sessions', positions)
    expect(await decisionCount()).toBe(before + 20)
    const last = (places: Position[]) => Math.max(...places.map(({ offset }) => offset))
    expect(last(seen)).toBe(last(positions) + 1)
  })

  test('two runners share the partitions and apply each event once', async () => {
    const applied = await world.openApplied()
    const before = await decisionCount()
    await world.run(await testLog.open(), sessionsProjection, { applied })
    await world.run(await testLog.open(), sessionsProjection, { applied })
    const positions: Position[] = []
    for (let i = 0; i < 10; i++)
      positions.push(...(await world.append(log, decisions(1000 + 30 * i, 30))))
    await applied.waitFor('sessions', positions, { timeoutMs: 20_000 })
    expect(await decisionCount()).toBe(before + 300)
    const { rows } = await world.database.pool.query(
      `select v.visitor_id from read.visitors v where seen_count <> (
         select count(*) from read.visitor_sessions s where s.visitor_id = v.visitor_id)`,
    )
    expect(rows).toEqual([])
  })

  test('waiting for events that no runner applies rejects with 503', async () => {
    const applied = await world.openApplied()
    const [position] = await world.append(log, [decision(5000)])
    if (!position) throw new Error('nothing appended')
    const waiting = applied.waitFor('sessions', [position], { timeoutMs: 50 })
    const headers = { 'retry-after': '1' }
    await expect(waiting).rejects.toMatchObject({ code: 'service.unavailable', headers })
  })

  test('a lost notification only delays waiters', async () => {
    const applied = await world.openApplied()
    const build = await findLiveBuild(world.database.pool, 'sessions')
    const silently = { topic: 'tidegate.sessions.v1', partition: 7, offset: 41 }
    const waiting = applied.waitFor('sessions', [silently], { timeoutMs: 20_000 })
    await world.database.pool.query(
      `insert into tidegate.projection_offsets values ('sessions', $1, $2, $3, 42)`,
      [build?.build, silently.topic, silently.partition],
    )
    await waiting
    await world.database.pool.query('delete from tidegate.projection_offsets where partition = 7')
  })

  test('a runner reads records again if Postgres loses its last commits', async () => {
    const applied = await world.openApplied()
    await world.run(log, sessionsProjection, { applied })
    const before = await world.append(log, decisions(6000, 30))
    await applied.waitFor('sessions', before)
    const build = await findLiveBuild(world.database.pool, 'sessions')
    await world.database.pool.query(
      `delete from ${build?.schema}.decisions where event_id > '${id('evt', 6009)}'`,
    )
    await world.database.pool.query(
      `update tidegate.projection_offsets set next_offset = greatest(0, next_offset - 15) where topic = '${topic}'`,
    )
    await world.append(log, decisions(6100, 30))
    const since = `event_id >= '${id('evt', 6000)}'`
    await eventually(async () => expect(await decisionCount(since)).toBe(60))
  })

  test('events are applied once if the connection is killed before the commit', async () => {
    const applied = await world.openApplied()
    let killed = false
    const projection: Projection = {
      ...sessionsProjection,
      async apply(tx, events) {
        const writes = await sessionsProjection.apply(tx, events)
        if (killed) return writes
        killed = true
        await runAsOneStatement(tx, writes)
        await tx.query('select pg_terminate_backend(pg_backend_pid())')
        return []
      },
    }
    const running = await world.run(log, projection, { applied })
    const before = await decisionCount()
    const positions = await world.append(log, decisions(6500, 30, 30))
    await applied.waitFor('sessions', positions, { timeoutMs: 20_000 })
    expect(killed).toBe(true)
    expect(await decisionCount()).toBe(before + 30)
    expect(running.status().every((partition) => partition.stopped === null)).toBe(true)
  })

  test('an event that cannot be applied stops only its own partition, with an error log', async () => {
    const applied = await world.openApplied()
    const lines: unknown[] = []
    const logger = silent.child({}, { level: 'silent' })
    logger.error = (...args: unknown[]) => lines.push(args)
    const poisonSession = id('sid', 7001)
    const projection = {
      ...sessionsProjection,
      apply: async (...[tx, events]: Parameters<typeof sessionsProjection.apply>) => {
        const isPoison = events.some(({ data }) => Object(data).session_id === poisonSession)
        if (isPoison) throw new Error('this handler has a defect')
        return sessionsProjection.apply(tx, events)
      },
    }
    const running = await world.run(log, projection, { applied, logger })
    const partition = await log.partitionOf(topic, poisonSession)
    const events = [...decisions(7100, 30), decision(7001), ...decisions(7200, 30)]
    const positions = await world.append(log, events)
    const poison = positions[30]
    const others = positions.filter((position) => position.partition !== partition)
    const earlier = positions.slice(0, 30).filter((position) => position.partition === partition)
    await applied.waitFor('sessions', [...others, ...earlier], { timeoutMs: 20_000 })
    const status = await eventually(() => {
      const found = running.status().find((known) => known.partition === partition)
      expect(found?.stopped).toContain('this handler has a defect')
      return found
    })
    expect(status?.nextOffset).toBe(poison?.offset)
    expect(JSON.stringify(lines)).toContain(`"offset":${poison?.offset}`)
    await running.stop()
    // With the defect fixed, no event is lost.
    const fixed = await world.run(log, sessionsProjection, { applied })
    await applied.waitFor('sessions', positions, { timeoutMs: 20_000 })
    expect(fixed.status().every((known) => known.stopped === null)).toBe(true)
  })
})
