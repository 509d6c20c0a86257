import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AppliedOffsets, createAppliedOffsets } from '../../infra/event-store/applied.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { runPruner } from '../../infra/event-store/prune.ts'
import { rebuild } from '../../infra/event-store/rebuild.ts'
import { type RunningProjection, runProjection } from '../../infra/event-store/runner.ts'
import type { Periodic } from '../../infra/flow/periodic.ts'
import { type EventLog, type Position, partitionName } from '../../infra/log/port.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { policiesProjection } from '../../projections/policies/projection.ts'
import { findRetentionCutoffs } from '../../projections/policies/queries.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { eventTopics } from '../../schemas/events.ts'
import { foreignValues } from '../support/foreign-records.ts'
import { openTestLogs } from '../support/logs.ts'
import { pastErasure, pastEvents, pastExpiry, pastMeta } from '../support/past-events.ts'
import { openProjectionWorld, type ProjectionWorld, silent } from '../support/projections.ts'

const owner = { organizationId: `org_${'1'.padStart(26, '0')}` }
const start = 1_700_000_000_000
const hour = 60 * 60 * 1000
const piece = 12
// Limits a round to five days, because decisions expire after six and must not expire while the rebuild is compared.
const mostPieces = 10
const patient = { timeoutMs: 60_000 }

describe.each(openTestLogs())('during traffic and pruning, on $name', (testLog) => {
  let world: ProjectionWorld
  let log: EventLog
  let applied: AppliedOffsets
  let running: RunningProjection[]
  let pruner: Periodic
  let written = 0
  const skipped = new Set<string>()
  const nameOf = (position: Position) => `${partitionName(position)} ${position.offset}`
  const skips = { has: async (position: Position) => skipped.has(nameOf(position)) }

  beforeAll(async () => {
    world = await openProjectionWorld()
    log = await testLog.open()
    const projections = [sessionsProjection, policiesProjection]
    const topics = new Set(projections.flatMap((projection) => projection.topics))
    await log.ensureTopics([...topics].map((topic) => ({ topic, partitions: 3 })))
    const { pool, url } = world.database
    applied = await createAppliedOffsets({ url, pool, logger: silent })
    const about = { log, pool, codec: world.codec, applied, logger: silent, skips }
    running = await Promise.all(
      projections.map((projection) => runProjection({ ...about, projection })),
    )
    while (written < 480) await happen()
    const pruning = {
      pool,
      projection: sessionsProjection,
      findCutoffs: findRetentionCutoffs,
      logger: silent,
    }
    pruner = runPruner({ ...pruning, intervalMs: 20 })
  }, 300_000)
  afterAll(async () => {
    await pruner?.stop()
    await Promise.all((running ?? []).map((one) => one.stop()))
    await applied?.close()
    await world?.close()
    await testLog.cleanup()
  })

  const append = (events: DomainEvent[]) =>
    world.append(
      log,
      events.map((event) => ({ event, meta: pastMeta(event) })),
    )

  /** Appends half a day of events: sessions, a skipped record, an erasure and an expiry. */
  async function happen(): Promise<void> {
    const sessions = pastEvents(owner, { from: written, count: piece, start })
    written += piece
    const now = start + written * hour
    const [foreign] = await log.append([
      {
        topic: eventTopics.SessionScored,
        key: `foreign ${written}`,
        value: foreignValues['that no schema wrote'],
        headers: { event_type: 'SessionScored' },
      },
    ])
    if (foreign) skipped.add(nameOf(foreign))
    const erased = pastErasure(owner, written - 1 - (written % 35))
    const placed = await append([...sessions, erased])
    await applied.waitFor('sessions', placed, patient)
    const expiry = pastExpiry(owner, { now, days: [12, 6, 15] })
    await applied.waitFor('policies', await append([expiry]), patient)
  }

  test.each([1, 2])(
    'a rebuild of sessions is equal, round %i',
    async () => {
      let isOver = false
      let pieces = 0
      const traffic = async () => {
        for (; !isOver && pieces < mostPieces; pieces++) await happen()
      }
      // A rebuild in its own process has its own pool.
      const pool = createPool({ url: world.database.url })
      const about = {
        projection: sessionsProjection,
        log,
        pool,
        codec: world.codec,
        logger: silent,
        skips,
      }
      const rebuilding = rebuild({ ...about, findCutoffs: findRetentionCutoffs }).finally(() => {
        isOver = true
        return pool.end()
      })
      const [report] = await Promise.all([rebuilding, traffic()])
      expect(report.tables.flatMap(({ differences }) => differences)).toEqual([])
      expect(report).toMatchObject({ equal: true, switched: true })
      const { rows } = await world.database.pool.query<{ sessions: number; marked: number }>(
        `select count(*)::int as sessions, count(mark_id)::int as marked from read.sessions`,
      )
      expect(pieces).toBeGreaterThan(0)
      expect(rows[0]?.sessions).toBeLessThan(written)
      expect(rows[0]?.marked).toBeGreaterThan(0)
    },
    300_000,
  )
})
