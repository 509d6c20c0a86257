import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { migrate } from '../../../infra/event-store/builds.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { rebuild } from '../../../infra/event-store/rebuild.ts'
import type { RunningProjection } from '../../../infra/event-store/runner.ts'
import type { EventLog, Position } from '../../../infra/log/port.ts'
import { webhooksProjection } from '../../../projections/webhooks/projection.ts'
import { findDelivery, findEndpoint } from '../../../projections/webhooks/queries.ts'
import { webhookRetentionMs } from '../../../projections/webhooks/tables.ts'
import { openTestLogs } from '../../support/logs.ts'
import { noSkips } from '../../support/no-skips.ts'
import { openProjectionWorld, type ProjectionWorld, silent } from '../../support/projections.ts'
import {
  attempted,
  endpointCreated,
  failed,
  org,
  raised,
  redelivery,
  skipped,
  start,
  succeeded,
  topic,
  wdlv,
  we,
} from './events.ts'

/** Events of 60 days, so that in each partition the first have to go. */
const count = 300
const timeOf = (n: number) => start + Math.floor((2 * webhookRetentionMs * n) / count)

function story(n: number): DomainEvent[] {
  const first = raised(n, [1, 2], { created_at: timeOf(n) })
  const ends = [
    [succeeded([n, 1], 1)],
    [attempted([n, 1], 1), succeeded([n, 1], 2)],
    [failed([n, 1], 1), redelivery([n, 1])],
    [skipped([n, 1])],
  ]
  return [first, ...(ends[n % ends.length] ?? [])]
}

describe.each(openTestLogs())('webhooks on $name', (testLog) => {
  let world: ProjectionWorld
  let log: EventLog
  let applied: Applied
  let running: RunningProjection
  let logged = 0

  async function append(events: DomainEvent[]): Promise<Position[]> {
    const metas = { time: 1, organizationId: org(1), environment: 'live' as const }
    return world.append(
      log,
      events.map((event) => ({ event, meta: { eventId: `log_${logged++}`, ...metas } })),
    )
  }

  beforeAll(async () => {
    world = await openProjectionWorld()
    await migrate(world.database.pool, [webhooksProjection])
    log = await testLog.open()
    await log.ensureTopics(
      [topic, 'tidegate.erasures.v1'].map((one) => ({ topic: one, partitions: 3 })),
    )
    applied = await world.openApplied()
    running = await world.run(log, webhooksProjection, { applied })
  })
  afterAll(async () => {
    await running?.stop()
    await world?.close()
    await testLog.cleanup()
  })

  test('a rebuild equals what was applied as it came, and goes on', async () => {
    const events = Array.from({ length: count }, (_, n) => story(n))
    const positions = await append([endpointCreated(1), endpointCreated(2)])
    // In pieces, so that the live build meets other batches than the rebuild.
    for (let from = 0; from < count; from += 30)
      positions.push(...(await append(events.slice(from, from + 30).flat())))
    await applied.waitFor('webhooks', positions, { timeoutMs: 20_000 })
    const { pool } = world.database
    const report = await rebuild({
      projection: webhooksProjection,
      log,
      pool,
      codec: world.codec,
      logger: silent,
      skips: noSkips,
    })
    expect(report).toMatchObject({ equal: true, switched: true, records: positions.length })
    const rows = Object.fromEntries(report.tables.map((table) => [table.table, table.rows]))
    const { webhook_events = 0 } = rows
    expect(rows).toMatchObject({
      webhook_endpoints: 2,
      webhook_applied_events: 2,
      webhook_deliveries: 2 * webhook_events,
    })
    expect(webhook_events).toBeGreaterThan(0)
    expect(webhook_events).toBeLessThan(count)
    const later = raised(count, [1], { created_at: timeOf(count) })
    await applied.waitFor('webhooks', await append([later, succeeded([count, 1], 1)]))
    expect(await findDelivery(pool, wdlv(count, 1))).toMatchObject({
      status: 'succeeded',
      attempts: 1,
    })
    const endpoint = { organizationId: org(1), environment: 'live', endpointId: we(1) } as const
    expect((await findEndpoint(pool, endpoint))?.secrets[0]?.sealed).toEqual(
      Buffer.from([0, 255, 1]),
    )
  })
})
