import { afterAll, describe, expect, test } from 'vitest'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { auditProjection } from '../../../projections/audit/projection.ts'
import { listAudit } from '../../../projections/audit/queries.ts'
import { openTestLogs } from '../../support/logs.ts'
import { testCause } from '../../support/projections.ts'
import { sessionScored } from '../../support/session-scored.ts'
import { openFollowedLog } from '../followed-log.ts'
import { marked, scope, unmarked } from '../marks/events.ts'
import { id } from '../world-events.ts'

const { organizationId } = scope
const idOf = (n: number) => `evt_${String(n).padStart(2, '0')}`

/** Returns an event; four of five have a cause. */
function eventOf(n: number): DomainEvent {
  const of = { organization_id: organizationId }
  const session = { ...of, session_id: `sid_${n}`, environment: 'live' as const, event_id: idOf(n) }
  const kinds: DomainEvent[] = [
    { type: 'ApiKeyRenamed', data: { ...of, key_id: `key_${n}`, name: 'New', renamed_at: n } },
    { type: 'GateSessionExpired', data: { gate_session_id: `gate_${n}`, expired_at: n } },
    { type: 'WebhookEndpointEnabled', data: { ...of, endpoint_id: `we_${n}`, enabled_at: n } },
    { type: 'ClientUserCleared', data: { ...session, cleared_at: n } },
  ]
  const scored = {
    type: 'SessionScored',
    data: sessionScored({ ...session, visitor: null }),
  } as const
  return kinds[n % 5] ?? scored
}

describe.each(openTestLogs())('the audit log on $name', async (testLog) => {
  const world = await openFollowedLog(testLog, [auditProjection])
  for (let n = 0; n < 60; n += 20) await append(Array.from({ length: 20 }, (_, i) => n + i))
  // Repeated on the log, these must appear once in the read model.
  await append([0, 1])
  afterAll(() => world.close())

  /** Appends the events, three for each time. */
  async function append(numbers: number[]): Promise<void> {
    const records = numbers.map((n) => {
      const meta = { eventId: idOf(n), time: Math.floor(n / 3), organizationId, environment: null }
      return world.codec.toRecordWithCause(eventOf(n), meta, testCause)
    })
    await world.applied.waitFor('audit', await world.log.append(records), { timeoutMs: 20_000 })
  }
  const list = (query: Parameters<typeof listAudit>[1]) => listAudit(world.pool, query)

  test('pages through events with a cause, newest first, and a rebuild is equal', async () => {
    const caused = Array.from({ length: 60 }, (_, n) => n).filter((n) => n % 5 !== 4)
    const first = await list({ organizationId, limit: 7 })
    const last = first.rows.at(-1)
    if (!last) throw new Error('no page')
    const after = { occurredAt: last.occurred_at, id: last.id }
    const rest = await list({ organizationId, limit: 200, after })
    const rows = [...first.rows, ...rest.rows]
    expect(rows.map(({ id }) => id)).toEqual(caused.toReversed().map(idOf))
    expect([first.hasMore, rest.hasMore]).toEqual([true, false])
    for (const row of rows) expect(row).toMatchObject({ actor_type: 'operator', actor_id: 'test' })
    const { tables } = await world.rebuild(auditProjection)
    expect(tables).toMatchObject([{ rows: caused.length }])
  })

  test('filters by organization and time', async () => {
    const since = await list({ since: 15, limit: 200 })
    expect(
      since.rows
        .map(({ occurred_at }) => occurred_at)
        .toSorted()
        .at(0),
    ).toBe(15)
    expect(since.rows).toHaveLength(12)
    expect((await list({ organizationId: 'org_2', limit: 7 })).rows).toEqual([])
  })

  test('skips events that it does not list, even unreadable ones', async () => {
    const headers = { event_type: 'SessionScored', event_id: 'evt_x', event_time: '1' }
    const record = { key: 'sid_x', value: Buffer.from('not ours'), headers }
    const at = await world.log.append([{ topic: 'tidegate.sessions.v1', ...record }])
    await world.applied.waitFor('audit', at, { timeoutMs: 20_000 })
  })

  test('has one entry, with the id of the mark, for a request that marks several sessions', async () => {
    const events = [marked(1, 9), marked(2, 9), marked(3, 9), unmarked(1, 9), unmarked(2, 9)]
    await world.append(auditProjection, events)
    const { rows } = await list({ limit: 1000 })
    const entries = rows.filter(({ subject_id }) => subject_id === id('mrk', 9))
    expect(entries.map(({ type }) => type).toSorted()).toEqual(['SessionMarked', 'SessionUnmarked'])
    await world.rebuild(auditProjection)
  })
})
