import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { applyNew } from '../../../infra/event-store/apply-batch.ts'
import { liveBuild, useSchema } from '../../../infra/event-store/builds.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { type Db, transaction } from '../../../infra/postgres/pool.ts'
import { webhooksProjection } from '../../../projections/webhooks/projection.ts'
import {
  countActiveEndpoints,
  listEndpoints,
  listEvents,
  queueReadings,
  subscribedEndpoints,
} from '../../../projections/webhooks/queries.ts'
import { webhookRetentionMs } from '../../../projections/webhooks/tables.ts'
import {
  attempted,
  endpointCreated,
  org,
  raised,
  recorded,
  skipped,
  start,
  succeeded,
  useWebhooksWorld,
  we,
} from './events.ts'

const world = useWebhooksWorld()
const size = 500
const each = (one: (n: number) => DomainEvent) => Array.from({ length: size }, (_, n) => one(n))

/** How many statements the events take as one batch. */
async function statements(events: DomainEvent[]): Promise<number> {
  return transaction(world.database.pool, async (tx) => {
    const build = await liveBuild(tx, 'webhooks')
    if (!build) throw new Error('no live build')
    await tx.query(useSchema(build))
    const query = vi.spyOn(tx, 'query')
    try {
      await applyNew(
        tx,
        webhooksProjection,
        events.map((event) => recorded(event)),
      )
      return query.mock.calls.length
    } finally {
      query.mockRestore()
    }
  })
}

test('a batch takes a handful of statements, however many events it has', async () => {
  const taken = {
    endpoints: await statements(each((n) => endpointCreated(n))),
    raised: await statements(each((n) => raised(n, [n, n + 1]))),
    retrying: await statements(each((n) => attempted([n, n], 1))),
    mixed: await statements(each((n) => (n % 2 ? succeeded([n, n], 2) : skipped([n, n])))),
    repeated: await statements(each((n) => attempted([n, n], 1))),
    arrived: await statements(each((n) => succeeded([n, n], 1))),
    pruning: await statements(
      each((n) => raised(size + n, [n], { created_at: start + 2 * webhookRetentionMs + (n % 9) })),
    ),
  }
  expect(taken).toEqual({
    endpoints: 3,
    raised: 4,
    retrying: 3,
    mixed: 3,
    repeated: 2,
    arrived: 3,
    pruning: 6,
  })
})

test('thousands of finished deliveries hide neither what is due nor what is newest', async () => {
  for (let batch = 0; batch < 10; batch++) {
    const n = (i: number) => batch * size + i
    await world.given(...each((i) => raised(n(i), [i % 5])))
    await world.given(...each((i) => succeeded([n(i), i % 5], 1)))
  }
  await world.given(raised(9000, [1]))
  const { pool } = world.database
  expect(await queueReadings(pool, start + 9000)).toEqual({
    oldestDueAt: start + 9000,
    due: 1,
    failed: 0,
  })
  const scope = { organizationId: org(1), environment: 'live', since: start } as const
  const newest = await listEvents(pool, { ...scope, limit: 3 })
  expect(newest.map(({ subject_id }) => subject_id)).toEqual(['sid_9000', 'sid_4999', 'sid_4998'])
  const ofEndpoint = await listEvents(pool, { ...scope, limit: 200, endpointId: we(2) })
  expect(ofEndpoint).toHaveLength(200)
  expect(ofEndpoint[0]?.subject_id).toBe('sid_4997')
})

const statement = z
  .union([
    z.tuple([z.string(), z.array(z.unknown())]),
    z.tuple([z.object({ text: z.string(), values: z.array(z.unknown()) })]),
  ])
  .transform(([asked, values]) =>
    typeof asked === 'string' ? { text: asked, values: values ?? [] } : asked,
  )

/** How many rows Postgres looks at for the one statement that `run` makes, those that a filter drops too. */
async function rowsRead(run: (db: Db) => Promise<unknown>): Promise<number> {
  const { pool } = world.database
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

test('thousands of disabled endpoints are not read to list, to count or to find who is subscribed', async () => {
  for (let batch = 0; batch < 10; batch++) {
    const n = (i: number) => batch * size + i
    await world.given(...each((i) => endpointCreated(n(i))))
    await world.given(
      ...each((i): DomainEvent => {
        const about = { organization_id: org(1), endpoint_id: we(n(i)) }
        return {
          type: 'WebhookEndpointDisabled',
          data: { ...about, reason: 'manual', disabled_at: start },
        }
      }),
    )
  }
  await world.given(endpointCreated(9000))
  await world.database.pool.query('analyze')
  const scope = { organizationId: org(1), environment: 'live' } as const
  const wanted = [{ ...scope, type: 'session.result.persisted' as const }]
  expect(await rowsRead((db) => listEndpoints(db, scope))).toBe(201)
  expect(await rowsRead((db) => countActiveEndpoints(db, org(1)))).toBe(1)
  expect(await rowsRead((db) => subscribedEndpoints(db, wanted))).toBe(1)
})
