import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { applyNewEvents } from '../../../infra/event-store/apply-batch.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { listDeliveries, listResendable } from '../../../projections/webhooks/list-deliveries.ts'
import { webhooksProjection } from '../../../projections/webhooks/projection.ts'
import {
  countActiveEndpoints,
  findSubscribedEndpoints,
  listEndpoints,
  listEvents,
} from '../../../projections/webhooks/queries.ts'
import { deliveryStatuses } from '../../../projections/webhooks/tables.ts'
import { inLiveBuild } from '../read-model.ts'
import {
  attempted,
  disabled,
  endpointCreated,
  failed,
  org,
  raised,
  recorded,
  skipped,
  start,
  succeeded,
  useWebhooksWorld,
  we,
} from './events.ts'

const world = await useWebhooksWorld()
const size = 500
const scope = { organizationId: org(1), environment: 'live' } as const
const each = (one: (n: number) => DomainEvent) => Array.from({ length: size }, (_, n) => one(n))

/** Counts the statements for the events as one batch. */
function statements(events: DomainEvent[]): Promise<number> {
  const batch = events.map((event) => recorded(event))
  return inLiveBuild(world.pool, webhooksProjection, async (tx) => {
    const query = vi.spyOn(tx, 'query')
    await applyNewEvents(tx, webhooksProjection, batch)
    const { length } = query.mock.calls
    query.mockRestore()
    return length
  })
}

test.each<[number, string, (n: number) => DomainEvent]>([
  [3, 'endpoints', (n) => endpointCreated(n)],
  [4, 'events', (n) => raised(size + n, [n, n + 1])],
  [3, 'attempts', (n) => attempted([n, n], 1)],
  [3, 'ends', (n) => (n % 2 ? succeeded([n, n], 2) : skipped([n, n]))],
])('a batch takes %i statements, however many %s it has', async (count, _, event) => {
  await world.given(...each((n) => raised(n, [n])))
  expect(await statements(each(event))).toBe(count)
})

const statement = z
  .union([
    z.tuple([z.string(), z.array(z.unknown())]),
    z.tuple([z.object({ text: z.string(), values: z.array(z.unknown()) })]),
  ])
  .transform(([asked, values]) =>
    typeof asked === 'string' ? { text: asked, values: values ?? [] } : asked,
  )

/** Returns the number of rows that PostgreSQL scans for the single statement of `run`, including filtered ones. */
async function rowsRead(run: (db: Db) => Promise<unknown>): Promise<number> {
  const { pool } = world
  const query = vi.spyOn(pool, 'query')
  await run(pool)
  const { text, values } = statement.parse(query.mock.calls[0])
  query.mockRestore()
  const { rows } = await pool.query<Record<string, string>>(
    `explain (analyze, timing off) ${text}`,
    values,
  )
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
  const read = [
    ...plan.matchAll(
      /Scan .*on webhook_endpoints .*actual rows=([\d.]+)|Rows Removed by Filter: (\d+)/g,
    ),
  ]
  if (read.length === 0) throw new Error(plan)
  return read.reduce((sum, [, scanned, dropped]) => sum + Number(scanned ?? dropped), 0)
}

test('thousands of disabled endpoints are not read to list, count or find subscribers', async () => {
  for (let batch = 0; batch < 10; batch++) {
    const n = (i: number) => batch * size + i
    await world.given(...each((i) => endpointCreated(n(i))))
    await world.given(...each((i) => disabled(n(i), { reason: 'manual', disabled_at: start })))
  }
  await world.given(endpointCreated(9000))
  await world.pool.query('analyze')
  const wanted = [{ ...scope, type: 'session.result.persisted' as const }]
  expect(await rowsRead((db) => listEndpoints(db, scope))).toBe(201)
  expect(await rowsRead((db) => countActiveEndpoints(db, org(1)))).toBe(1)
  expect(await rowsRead((db) => findSubscribedEndpoints(db, wanted))).toBe(1)
})

test.each(deliveryStatuses)(
  'thousands of %s deliveries are not read to list others',
  async (status) => {
    const endings = {
      pending: () => [],
      succeeded: (n: number) => [succeeded([n, 1], 1)],
      failed: (n: number) => [failed([n, 1], 1)],
      skipped: (n: number) => [skipped([n, 1])],
    }
    await world.given(endpointCreated(1))
    for (let batch = 0; batch < 6; batch++) {
      const events = Array.from({ length: size }, (_, i) => batch * size + i)
      await world.given(...events.flatMap((n) => [raised(n, [1]), ...endings[status](n)]))
    }
    for (const [i, other] of deliveryStatuses.entries())
      await world.given(
        raised(9000 + i, [1], { created_at: start - i }),
        ...endings[other](9000 + i),
      )
    await world.pool.query('analyze')
    const query = { endpoint_id: we(1), since: 0, limit: 20 }
    const resendable = deliveryStatuses.filter((name) => name !== 'pending')
    const runs = [
      ...deliveryStatuses.map(
        (name) => (db: Db) => listDeliveries(db, { ...query, status: [name] }),
      ),
      (db: Db) => listDeliveries(db, query),
      (db: Db) => listResendable(db, { ...query, status: resendable }),
      (db: Db) => listEvents(db, { ...scope, since: 0, limit: 20, endpointId: we(1) }),
    ]
    for (const run of runs) expect(await rowsRead(run)).toBeLessThan(50)
  },
)
