import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Applied } from '../../../infra/event-store/applied.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { rebuild } from '../../../infra/event-store/rebuild.ts'
import type { EventLog, Position } from '../../../infra/log/port.ts'
import { gateProjection } from '../../../projections/gate/projection.ts'
import {
  dueGateSessions,
  findAgentToken,
  findGateSession,
  findLoginByCode,
  startedApprovals,
} from '../../../projections/gate/queries.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { openTestLogs } from '../../support/logs.ts'
import { noSkips } from '../../support/no-skips.ts'
import { openProjectionWorld, type ProjectionWorld, silent } from '../../support/projections.ts'
import { day, events, gacct, gate, minute, start, topic } from './events.ts'

type Kind = keyof typeof events

/** How signups and logins come and go, as routes would decide it. */
const stories: Kind[][] = [
  ['registered', 'verified', 'opened', 'started', 'approved', 'acknowledged', 'renewed', 'changed'],
  ['opened', 'started', 'approved', 'revoked'],
  ['opened', 'started', 'approved', 'deliveryExpired'],
  ['opened', 'started', 'rejected'],
  ['opened', 'started'],
  ['opened', 'rejected'],
  ['opened', 'expired', 'registered', 'disabled'],
  ['opened'],
  ['loginOpened', 'loginApproved', 'codeConsumed'],
  ['loginOpened', 'loginApproved', 'codeExpired'],
  ['loginOpened', 'loginApproved'],
  ['loginOpened', 'expired'],
]
const count = 60
const kindsOf = (n: number) => stories[n % stories.length] ?? []
const story = (n: number): DomainEvent[] =>
  kindsOf(n).map((kind, step) => events[kind](n, start + step))

describe.each(openTestLogs())('gate on $name', (testLog) => {
  let world: ProjectionWorld
  let log: EventLog
  let applied: Applied
  let logged = 0

  async function append(appended: DomainEvent[]): Promise<Position[]> {
    const metas = { time: 1, organizationId: null, environment: null }
    return world.append(
      log,
      appended.map((event) => ({ event, meta: { eventId: `log_${logged++}`, ...metas } })),
    )
  }

  beforeAll(async () => {
    world = await openProjectionWorld()
    log = await testLog.open()
    const erasures = { topic: eventTopics.VisitorErased, partitions: 1 }
    await log.ensureTopics([{ topic, partitions: 3 }, erasures])
    applied = await world.openApplied()
    await world.run(log, gateProjection, { applied })
  })
  afterAll(async () => {
    await world?.close()
    await testLog.cleanup()
  })

  test('a rebuild equals what was applied as it came, and goes on', async () => {
    const positions: Position[] = []
    // In pieces, so that the live build meets other batches than the rebuild.
    for (let n = 0; n < count; n += 5) {
      const some = Array.from({ length: 5 }, (_, i) => story(n + i))
      positions.push(...(await append(some.flat())))
    }
    await applied.waitFor('gate', positions, { timeoutMs: 20_000 })
    const { pool } = world.database
    const report = await rebuild({
      projection: gateProjection,
      log,
      pool,
      codec: world.codec,
      logger: silent,
      skips: noSkips,
    })
    expect(report).toMatchObject({ equal: true, switched: true, records: positions.length })
    const rows = Object.fromEntries(report.tables.map(({ table, rows }) => [table, rows]))
    const approvals = Array.from({ length: count }, (_, n) => n).filter((n) =>
      kindsOf(n).includes('approved'),
    )
    expect(rows).toMatchObject({
      gate_services: (2 * count) / stories.length,
      gate_sessions: count,
      gate_agent_tokens: approvals.filter((n) => n % 3 !== 0).length,
    })
    await applied.waitFor('gate', await append([events.acknowledged(1, start + day)]))
    expect(await findGateSession(pool, gate(1))).toMatchObject({
      delivery: 'acknowledged',
      delivery_sealed: null,
    })
    expect(await findGateSession(pool, gate(13))).toMatchObject({
      kind: 'signup',
      metadata: '{"a":"\\u0000"}',
      delivery_sealed: Buffer.from([0, 255, 13]),
      gate_account_id: gacct(13),
    })
  })

  test('what is due is found, and never more than asked for', async () => {
    const { pool } = world.database
    const due = async (what: Parameters<typeof dueGateSessions>[1], now: number, limit = 100) =>
      (await dueGateSessions(pool, what, { now, limit })).toSorted()
    const are = (index: number) =>
      Array.from({ length: 5 }, (_, i) => gate(index + i * stories.length))
    // A signup that is being approved is pending, too, and ends otherwise.
    expect(await due('sessions', start + 15 * minute)).toEqual(are(7).toSorted())
    const [first, second, ...others] = await due('sessions', start + 15 * minute, 2)
    expect(are(7)).toEqual(expect.arrayContaining([first, second]))
    expect(others).toEqual([])
    expect(await due('sessions', start + 15 * minute - 1)).toEqual([])
    expect(await due('codes', start + 1 + 5 * minute)).toEqual(are(10).toSorted())
    expect(await due('deliveries', start + 2 + day)).toEqual(are(1).slice(1).toSorted())
  })

  test('approvals that nobody works on are found, organizations in turn', async () => {
    const { pool } = world.database
    const started = Array.from({ length: 5 }, (_, i) => gate(4 + i * stories.length))
    const free = async (each = 100, limit = 100) =>
      (await startedApprovals(pool, { each, limit })).map(({ id }) => id)
    expect((await free()).toSorted()).toEqual(started)
    expect(await free(2)).toEqual((await free()).slice(0, 2))
    expect(await free(100, 3)).toEqual((await free()).slice(0, 3))
    const [held, old] = started
    await pool.query(
      `insert into tidegate.gate_leases values ($1, 'one', extract(epoch from clock_timestamp()) * 1000 + 60000),
       ($2, 'killed', extract(epoch from clock_timestamp()) * 1000 - 1)`,
      [held, old],
    )
    expect((await free()).toSorted()).toEqual(started.slice(1))
  })

  test('what clients bring along is found by its hash', async () => {
    const { pool } = world.database
    expect(await findAgentToken(pool, ['other', 'agent 1'])).toMatchObject({
      gate_account_id: gacct(1),
      account_name: 'Robin 1',
      status: 'revoked',
    })
    expect(await findAgentToken(pool, ['agent 0'])).toBeUndefined()
    expect((await findLoginByCode(pool, [`code ${start + 1}`]))?.kind).toBe('login')
  })
})
