import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Applied } from '../../../infra/event-store/applied.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { rebuild } from '../../../infra/event-store/rebuild.ts'
import type { EventLog, Position } from '../../../infra/log/port.ts'
import { auditProjection } from '../../../projections/audit/projection.ts'
import { listAudit } from '../../../projections/audit/queries.ts'
import { openTestLogs } from '../../support/logs.ts'
import { noSkips } from '../../support/no-skips.ts'
import {
  ensureTopics,
  openProjectionWorld,
  type ProjectionWorld,
  silent,
  testCause,
} from '../../support/projections.ts'
import { sessionScored } from '../../support/session-scored.ts'

const organizationId = `org_${'1'.repeat(26)}`
const count = 60

function eventOf(n: number): DomainEvent {
  const of = { organization_id: organizationId }
  const session = {
    ...of,
    session_id: `sid_${n}`,
    environment: 'live' as const,
    event_id: `evt_${n}`,
  }
  const kinds: DomainEvent[] = [
    { type: 'ApiKeyRenamed', data: { ...of, key_id: `key_${n}`, name: 'New', renamed_at: n } },
    { type: 'GateSessionExpired', data: { gate_session_id: `gate_${n}`, expired_at: n } },
    { type: 'WebhookEndpointEnabled', data: { ...of, endpoint_id: `we_${n}`, enabled_at: n } },
    { type: 'ClientUserCleared', data: { ...session, cleared_at: n } },
    { type: 'SessionScored', data: sessionScored({ ...session, visitor: null }) },
  ]
  return kinds[n % kinds.length] ?? fail()
}

function fail(): never {
  throw new Error('no event')
}

describe.each(openTestLogs())('the audit log on $name', (testLog) => {
  let world: ProjectionWorld
  let log: EventLog
  let applied: Applied

  beforeAll(async () => {
    world = await openProjectionWorld()
    log = await testLog.open()
    await ensureTopics(log)
    applied = await world.openApplied()
    await world.run(log, auditProjection, { applied })
  })
  afterAll(async () => {
    await world?.close()
    await testLog.cleanup()
  })

  function recordOf(n: number) {
    const meta = { eventId: `evt_${n}`, time: Math.floor(n / 3), organizationId, environment: null }
    return world.codec.toCausedRecord(eventOf(n), meta, testCause)
  }

  test('has what was caused, and a rebuild equals it', async () => {
    const { pool } = world.database
    const positions: Position[] = []
    for (let n = 0; n < count; n += 20)
      positions.push(...(await log.append(Array.from({ length: 20 }, (_, i) => recordOf(n + i)))))
    // Twice on the log is once in the read model.
    positions.push(...(await log.append([recordOf(0), recordOf(1)])))
    await applied.waitFor(auditProjection.name, positions, { timeoutMs: 20_000 })
    const { rows } = await listAudit(pool, { organizationId, limit: 200 })
    const caused = Array.from({ length: count }, (_, n) => n).filter((n) => n % 5 !== 4)
    expect(rows.map(({ id }) => id).toSorted()).toEqual(caused.map((n) => `evt_${n}`).toSorted())
    for (const { actor_type, actor_id } of rows)
      expect([actor_type, actor_id]).toEqual(['operator', 'test'])
    const report = await rebuild({
      projection: auditProjection,
      log,
      pool,
      codec: world.codec,
      logger: silent,
      skips: noSkips,
    })
    expect(report).toMatchObject({ equal: true, switched: true })
    expect(report.tables).toMatchObject([{ rows: caused.length }])
  })

  test('passes over what it does not list, even if nobody can read it', async () => {
    const value = Buffer.from('not ours')
    const headers = { event_type: 'SessionScored', event_id: 'evt_x', event_time: '1' }
    const topic = 'tidegate.sessions.v1'
    const [at] = await log.append([{ topic, key: 'sid_x', value, headers }])
    if (!at) throw new Error('nothing appended')
    await applied.waitFor(auditProjection.name, [at], { timeoutMs: 20_000 })
  })

  test('is paged and narrowed by organization and time', async () => {
    const { pool } = world.database
    const all = (await listAudit(pool, { limit: 200 })).rows.map(({ id }) => id)
    const first = await listAudit(pool, { organizationId, limit: 7 })
    const last = first.rows.at(-1)
    if (!last) throw new Error('no page')
    const after = { occurredAt: last.occurred_at, id: last.id }
    const rest = await listAudit(pool, { organizationId, limit: 200, after })
    expect([...first.rows, ...rest.rows].map(({ id }) => id)).toEqual(all)
    expect([first.hasMore, rest.hasMore]).toEqual([true, false])
    const since = await listAudit(pool, { since: last.occurred_at, limit: 200 })
    expect(since.rows.every(({ occurred_at }) => occurred_at >= last.occurred_at)).toBe(true)
    expect(since.rows.length).toBeGreaterThanOrEqual(7)
    expect((await listAudit(pool, { organizationId: 'org_2', limit: 7 })).rows).toEqual([])
  })
})
