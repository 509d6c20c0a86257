import { beforeEach, describe, expect, test } from 'vitest'
import { createConcurrencyLimits } from '../../../../services/webhooks/dispatch/concurrency.ts'
import { createReceive, dueEndpoints } from '../../../../services/webhooks/dispatch/queue.ts'
import { openQueueWorld, type QueueWorld } from './queue-world.ts'

const now = Date.UTC(2026, 10, 21, 12)

describe('a taker', () => {
  let own: QueueWorld
  const endpoints = Array.from({ length: 9 }, (_, i) => `we_${i}`)

  beforeEach(async () => {
    own = await openQueueWorld()
    for (const endpointId of endpoints) await own.due({ endpointId, count: 4, dueAt: now - 1000 })
    await own.due({ endpointId: 'we_later', count: 1, dueAt: now + 500 })
    return () => own.close()
  })

  test('goes round: with few free requests each endpoint gets its turn before any gets another', async () => {
    const receive = createReceive({ ...receiveOptions(), limits: createConcurrencyLimits() })
    const turns: string[] = []
    for (let i = 0; i < 6; i++) {
      const { deliveries, hasMore, nextAt } = await receive({ free: 3, ended: [] })
      turns.push(...deliveries.map(({ endpointId }) => endpointId))
      expect({ hasMore, nextAt }).toEqual({ hasMore: true, nextAt: now + 501 })
    }
    expect(turns.slice(0, 9).toSorted()).toEqual(endpoints)
    expect(turns.slice(9).toSorted()).toEqual(endpoints)
  })

  test('says when nothing more is due', async () => {
    const receive = createReceive({ ...receiveOptions(), limits: createConcurrencyLimits() })
    const first = await receive({ free: 256, ended: [] })
    expect(first.deliveries).toHaveLength(18)
    expect(first.hasMore).toBe(true)
    await own.finish(Array.from({ length: 36 }, (_, i) => `we_${i % 9}/${1 + Math.floor(i / 9)}`))
    expect(await receive({ free: 256, ended: [] })).toEqual({
      deliveries: [],
      hasMore: false,
      nextAt: now + 501,
    })
  })

  test('makes the rows to lock again that a crash of the database has lost', async () => {
    const receive = createReceive({ ...receiveOptions(), limits: createConcurrencyLimits() })
    const first = await receive({ free: 256, ended: [] })
    await own.pool.query(`delete from tidegate.webhook_lanes where endpoint_id = 'we_4'`)
    const of = (received: typeof first) => new Set(received.deliveries.map(({ endpointId }) => endpointId))
    const second = await receive({ free: 256, ended: [] })
    expect(of(second)).toEqual(new Set(endpoints.filter((id) => id !== 'we_4')))
    expect(second.nextAt).toBe(now + 20)
    expect(of(await receive({ free: 256, ended: [] }))).toEqual(new Set(['we_4']))
  })

  test('looks ever more seldom where another process stays', async () => {
    const receive = createReceive({ ...receiveOptions(), limits: createConcurrencyLimits() })
    await receive({ free: 256, ended: [] })
    const other = await own.pool.connect()
    await other.query('begin')
    await other.query('select from tidegate.webhook_lanes for update')
    const waits: number[] = []
    for (let i = 0; i < 7; i++) waits.push((await receive({ free: 256, ended: [] })).nextAt - now)
    await other.query('rollback')
    other.release()
    expect(waits).toEqual([20, 40, 80, 160, 320, 500, 500])
    expect((await receive({ free: 256, ended: [] })).nextAt).toBe(now + 501)
  })

  const receiveOptions = () => ({
    pool: own.pool,
    owner: 'me',
    visibilityTimeoutMs: 60_000,
    clock: () => now,
  })
})

describe('what is due', () => {
  const ids = Array.from({ length: 12 }, (_, i) => `we_${String.fromCharCode(97 + i)}`)
  const dueOf = (i: number) => 1 + 4 * i
  let own: QueueWorld

  beforeEach(async () => {
    own = await openQueueWorld()
    for (const [i, endpointId] of ids.entries())
      await own.due({ endpointId, count: dueOf(i), dueAt: now - 1000 })
    await own.due({ endpointId: 'we_b1', count: 3, dueAt: now + 70 })
    return () => own.close()
  })

  const expected = (most: number) =>
    ids.map((endpointId, i) => ({ endpointId, organizationId: 'org', due: Math.min(most, dueOf(i)) }))

  test('is all there is of it where that is little', async () => {
    const found = await dueEndpoints(own.pool, { now })
    expect(found).toEqual({ endpoints: expected(Infinity), nextAt: now + 71 })
  })

  test.each([1, 5, 12, 13, 500])(
    'is found endpoint by endpoint where it is much, %i at once',
    async (pageSize) => {
      const found = await dueEndpoints(own.pool, { now, firstRows: 100, pageSize })
      expect(found).toEqual({ endpoints: expected(20), nextAt: now + 71 })
    },
  )

  test('is nothing when nothing waits', async () => {
    expect(await dueEndpoints(own.pool, { now: now - 5000 })).toEqual({ endpoints: [], nextAt: now - 999 })
    await own.finish(ids.flatMap((id, i) => Array.from({ length: dueOf(i) }, (_, n) => `${id}/${n + 1}`)))
    expect(await dueEndpoints(own.pool, { now: now + 70 })).toEqual({ endpoints: [], nextAt: now + 71 })
  })
})
