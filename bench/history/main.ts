import { parseArgs } from 'node:util'
import { migrate } from '../../infra/event-store/builds.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { countSessions } from '../../projections/sessions/aggregates.ts'
import type { GroupField } from '../../projections/sessions/count-groups.ts'
import type { SessionFilters } from '../../projections/sessions/filters.ts'
import { listSessions, type SessionPosition } from '../../projections/sessions/list-sessions.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { rollUpOnce } from '../../projections/sessions/roll-up.ts'
import { quantile } from '../stats.ts'
import { fillSessions, organizationId, spanMs } from './rows.ts'

// node bench/history/main.ts --url postgres://... fills an empty scratch database. A second run measures the existing
// rows.
const { values } = parseArgs({
  options: {
    url: { type: 'string', default: process.env.DATABASE_URL ?? '' },
    rows: { type: 'string', default: '10000000' },
    times: { type: 'string', default: '20' },
  },
})
const pool = createPool({ url: values.url, settings: { jit: 'off' } })
const scope = { organizationId, environment: 'live' } as const
const endsAt = Date.parse('2026-11-26T00:00:00Z')
const month = { since: endsAt - (spanMs * 31) / 90, until: endsAt }

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now()
  await work()
  return performance.now() - begun
}

const filters: Record<
  string,
  [frequent: SessionFilters, rare: SessionFilters, absent: SessionFilters]
> = {
  country: [{ country: ['US'] }, { country: ['AQ'] }, { country: ['ZZ'] }],
  asn: [{ asn: [1007] }, { asn: [4_200_000_001] }, { asn: [1] }],
  network: [{ network: ['hosting'] }, { network: ['tor'] }, { network: ['callback_proxy'] }],
  page_host: [
    { page_host: ['shop1.example.com'] },
    { page_host: ['rare.example.com'] },
    { page_host: ['none.example'] },
  ],
  browser: [{ browser: ['chrome'] }, { browser: ['konqueror'] }, { browser: ['none'] }],
  os: [{ os: ['windows'] }, { os: ['haiku'] }, { os: ['none'] }],
  ip: [{ ip: ['11.0.0.0/16'] }, { ip: ['192.0.2.1'] }, { ip: ['10.0.0.0/8'] }],
  signal: [
    { signal: ['webdriver_detected'] },
    { signal: ['automation_rare'] },
    { signal: ['none'] },
  ],
  attribution: [
    { attribution: ['playwright'] },
    { attribution: ['tool:rare'] },
    { attribution: ['none'] },
  ],
  score: [{ score_min: 70 }, { score_min: 100 }, { score_min: 100, score_max: 99 }],
  handed_off: [
    { handed_off: [true] },
    { handed_off: [true], country: ['AQ'] },
    { handed_off: [true], country: ['ZZ'] },
  ],
  mark: [{ mark: ['none'] }, { mark: ['bot'] }, { mark: ['fraud'] }],
  visitor_id: [
    { visitor_id: [await visitor('desc')] },
    { visitor_id: [await visitor('asc')] },
    { visitor_id: ['vid_none'] },
  ],
  verdict: [
    { verdict: ['bot'] },
    { verdict: ['bot', 'inconclusive'] },
    { verdict: ['inconclusive'] },
  ],
}

async function visitor(order: 'asc' | 'desc'): Promise<string> {
  await prepare()
  const { rows } = await pool.query<{ visitor_id: string }>(
    `select visitor_id from sessions_b1.sessions tablesample system (0.1) where organization_id = $1
     group by 1 order by count(*) ${order} limit 1`,
    [organizationId],
  )
  return rows[0]?.visitor_id ?? 'vid_none'
}

async function prepare(): Promise<void> {
  await migrate(pool, [sessionsProjection])
  const { rowCount } = await pool.query('select from read.sessions limit 1')
  if (rowCount === 0) await fillSessions(pool, { rows: Number(values.rows), endsAt })
}

async function firstPages(): Promise<void> {
  for (const [name, [...cases]] of Object.entries(filters)) {
    const p95s: string[] = []
    for (const one of cases) {
      const times: number[] = []
      for (let i = 0; i < Number(values.times); i++)
        times.push(await timed(() => listSessions(pool, scope, { limit: 50, filters: one })))
      p95s.push(
        quantile(
          times.toSorted((a, b) => a - b),
          0.95,
        ).toFixed(0),
      )
    }
    console.log(`| first page by ${name}, p95 ms: frequent, rare, absent | ${p95s.join(', ')} |`)
  }
}

async function walk(): Promise<void> {
  let pages = 0
  const ms = await timed(async () => {
    let after: SessionPosition | undefined
    do {
      const { readTo } = await listSessions(pool, scope, {
        limit: 50,
        filters: { ...month, country: ['ZZ'] },
        after,
      })
      after = readTo ?? undefined
      pages++
    } while (after)
  })
  console.log(
    `| 31 days walked to the end for an absent country, ${pages} pages, ms | ${ms.toFixed(0)} |`,
  )
}

async function counts(): Promise<void> {
  const fields: GroupField[] = [
    'country',
    'asn',
    'network',
    'page_host',
    'browser',
    'signal',
    'verdict',
  ]
  for (const field of fields) {
    const of = (more: SessionFilters, usesRollUps: boolean) => () =>
      countSessions(pool, scope, {
        interval: 'none',
        groupBy: [field],
        top: 10,
        usesRollUps,
        filters: { ...more, ...month },
      })
    await of({}, true)()
    const [rolled, read, filtered] = [
      await timed(of({}, true)),
      await timed(of({}, false)),
      await timed(of({ country: ['DE'] }, true)),
    ]
    console.log(
      `| 31 days counted by ${field}, ms: rolled up, from sessions, with a country besides | ${[rolled, read, filtered].map((ms) => ms.toFixed(0)).join(', ')} |`,
    )
  }
}

const rolling = await timed(async () => {
  while (await rollUpOnce(pool, endsAt));
})
console.log(`| rolling up all hours, s | ${(rolling / 1000).toFixed(0)} |`)
await firstPages()
await walk()
await counts()
await pool.end()
