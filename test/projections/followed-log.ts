import { migrate } from '../../infra/event-store/builds.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import type { FindCutoffs } from '../../infra/event-store/prune.ts'
import { type RebuildReport, rebuild } from '../../infra/event-store/rebuild.ts'
import type { Position } from '../../infra/log/port.ts'
import { eventTopics } from '../../schemas/events.ts'
import type { TestLog } from '../support/logs.ts'
import { noSkips } from '../support/no-skips.ts'
import { openProjectionWorld, silent } from '../support/projections.ts'

const patience = { timeoutMs: 20_000 }

/** Opens a log, and a database with read models that follow it. */
export async function openFollowedLog(testLog: TestLog, projections: Projection[]) {
  const world = await openProjectionWorld()
  const { codec } = world
  const { pool } = world.database
  await migrate(pool, projections)
  const log = await testLog.open()
  const topics = new Set(projections.flatMap((projection) => projection.topics))
  await log.ensureTopics([...topics].map((topic) => ({ topic, partitions: 3 })))
  const applied = await world.openApplied()
  for (const projection of projections) await world.run(log, projection, { applied })
  let appended = 0

  function metaOf({ type, data }: DomainEvent) {
    const isOfSession = eventTopics[type] === eventTopics.SessionScored
    return {
      eventId: isOfSession && 'event_id' in data ? data.event_id : `log_${appended++}`,
      time: 1,
      organizationId: 'organization_id' in data ? data.organization_id : null,
      environment: null,
    }
  }

  return {
    pool,
    log,
    applied,
    codec,
    /** Appends the events and waits until the read model has applied them. */
    async append({ name }: Projection, events: DomainEvent[]): Promise<Position[]> {
      const records = events.map((event) => ({ event, meta: metaOf(event) }))
      const positions = await world.append(log, records)
      await applied.waitFor(name, positions, patience)
      return positions
    },
    /** Rebuilds the read model. Throws if the rebuild differs. */
    async rebuild(projection: Projection, findCutoffs?: FindCutoffs): Promise<RebuildReport> {
      const options = { projection, log, pool, codec, logger: silent, skips: noSkips, findCutoffs }
      const report = await rebuild(options)
      const { tables, equal, switched } = report
      const differences = tables.flatMap((table) => table.differences)
      if (!equal || !switched) throw new Error(`not equal: ${JSON.stringify(differences)}`)
      return report
    },
    async close(): Promise<void> {
      await world.close()
      await testLog.cleanup()
    },
  }
}

export type FollowedLog = Awaited<ReturnType<typeof openFollowedLog>>
