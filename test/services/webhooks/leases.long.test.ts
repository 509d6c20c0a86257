import { expect, onTestFinished, test } from 'vitest'
import { createPool } from '../../../infra/postgres/pool.ts'
import { dispatchPoolOptions } from '../../../services/webhooks/dispatch/dispatcher.ts'
import { findDueEndpoints, takeDeliveries } from '../../../services/webhooks/leases.ts'
import { openLeaseWorld } from './lease-world.ts'

const now = Date.UTC(2026, 10, 21, 12)
const many = 100_000
// A statement that reads all due deliveries reads at least 1,900 pages.
const fewPages = 1200

interface Explained {
  'QUERY PLAN': { Plan: Record<string, unknown>; 'Execution Time': number }[]
}

test('with 100,000 deliveries due for a dead endpoint and 100,000 due later, the delivery of another endpoint is taken without reading them', async () => {
  const world = await openLeaseWorld()
  onTestFinished(() => world.close())
  await world.show({ endpointId: 'we_dead', count: many, dueAt: now - 2 * many })
  await world.show({ endpointId: 'we_later', count: many, dueAt: now + 1000 })
  await world.show({ endpointId: 'we_other', count: 1, dueAt: now - 1000 })
  await world.pool.query(`vacuum analyze ${world.schema}.webhook_deliveries`)

  const url = world.pool.options.connectionString ?? ''
  const pool = createPool({ url, ...dispatchPoolOptions, max: 1 })
  const found = await findDueEndpoints(pool, { now })
  expect(found.map(({ endpointId, due }) => [endpointId, due])).toEqual([
    ['we_dead', 10],
    ['we_other', 1],
  ])
  const quotas = found.map(({ endpointId, due }) => ({ endpointId, max: due }))
  const request = { owner: 'me', leaseMs: 60_000, quotas, max: 100, now }
  const taken = await takeDeliveries(pool, request)
  expect(taken.map(({ endpointId }) => endpointId).slice(0, 2)).toEqual(['we_dead', 'we_other'])
  expect(taken).toHaveLength(11)

  /** Returns the number of pages that a prepared statement reads. */
  async function explain(statement: string): Promise<number> {
    const { rows } = await pool.query<Explained>(
      `explain (analyze, buffers, format json) execute ${statement}`,
    )
    const [{ Plan: plan, 'Execution Time': ms } = { Plan: {}, 'Execution Time': 0 }] =
      rows[0]?.['QUERY PLAN'] ?? []
    const pages = Number(plan['Shared Hit Blocks']) + Number(plan['Shared Read Blocks'])
    console.log(`${statement.slice(0, 26)}: ${pages} pages, ${ms} ms`)
    return pages
  }
  const ids = `'{we_dead,we_other}', '{10,10}'`
  expect(await explain(`"webhook-due"(${now}, 1000)`)).toBeLessThan(fewPages)
  expect(await explain(`"webhook-due-endpoints"(${now})`)).toBeLessThan(fewPages)
  expect(await explain(`"webhook-take"(${ids}, 100, ${now}, 'me', 1000)`)).toBeLessThan(fewPages)
  await pool.end()
}, 300_000)
