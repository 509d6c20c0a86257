import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Applied } from '../../../infra/event-store/applied.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { rebuild } from '../../../infra/event-store/rebuild.ts'
import type { EventLog, Position } from '../../../infra/log/port.ts'
import { createRepeatCounter } from '../../../projections/repeats/queries.ts'
import { windows } from '../../../projections/repeats/tables.ts'
import { openTestLogs } from '../../support/logs.ts'
import { noSkips } from '../../support/no-skips.ts'
import { openProjectionWorld, type ProjectionWorld, silent } from '../../support/projections.ts'
import { metaOf } from '../../support/session-scored.ts'
import { askedAbout, attached, opened, repeatsProjection, start, topic } from './events.ts'

/** Sessions of two days, so that in each partition the first have to go. */
const count = 300
const timeOf = (n: number) => start + Math.floor((2 * windows.day * n) / count)

function story(n: number): DomainEvent[] {
  const [at, ip] = [timeOf(n), `203.0.113.${n % 5}`]
  const first = opened({ session: n, visitor: n % 7, behavior: null, ip, at })
  const later = opened({ session: n, visitor: n % 7, behavior: n % 90, ip, at, observed: at + 1 })
  return n % 3 === 0
    ? [first, later, attached({ session: n, user: `user ${n % 4}`, at: at + 2 })]
    : [first, later]
}

describe.each(openTestLogs())('repeats on $name', (testLog) => {
  let world: ProjectionWorld
  let log: EventLog
  let applied: Applied

  async function append(events: DomainEvent[]): Promise<Position[]> {
    return world.append(
      log,
      events.map((event) => {
        if (!('event_id' in event.data && 'environment' in event.data))
          throw new Error('of no session')
        return { event, meta: metaOf(event.data) }
      }),
    )
  }

  beforeAll(async () => {
    world = await openProjectionWorld()
    log = await testLog.open()
    await log.ensureTopics(
      [topic, 'tidegate.erasures.v1'].map((one) => ({ topic: one, partitions: 3 })),
    )
    applied = await world.openApplied()
    await world.run(log, repeatsProjection, { applied })
  })
  afterAll(async () => {
    await world?.close()
    await testLog.cleanup()
  })

  test('a rebuild equals what was applied as it came, and goes on', async () => {
    const events = Array.from({ length: count }, (_, n) => story(n))
    const positions: Position[] = []
    // In pieces, so that the live build meets other batches than the rebuild.
    for (let from = 0; from < count; from += 30)
      positions.push(...(await append(events.slice(from, from + 30).flat())))
    await applied.waitFor('repeats', positions, { timeoutMs: 20_000 })
    const { pool } = world.database
    const about = {
      projection: repeatsProjection,
      log,
      pool,
      codec: world.codec,
      logger: silent,
      skips: noSkips,
    }
    const report = await rebuild(about)
    expect(report).toMatchObject({ equal: true, switched: true, records: positions.length })
    const [{ rows = 0 } = {}] = report.tables
    expect(rows).toBeGreaterThan(count / 3)
    expect(rows).toBeLessThan(count)
    const at = timeOf(count)
    await applied.waitFor('repeats', await append([opened({ session: count, behavior: 999, at })]))
    const [counted] = await createRepeatCounter()(pool, [
      askedAbout({ session: 9999, behavior: 999, at }),
    ])
    expect(counted?.repeats.behavior_sessions).toEqual({ five_minutes: 2, hour: 2, day: 2 })
  })
})
