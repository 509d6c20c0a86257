import { execFileSync } from 'node:child_process'
import os from 'node:os'
import { parseArgs } from 'node:util'
import type pg from 'pg'
import { z } from 'zod'
import { createPool } from '../../infra/postgres/pool.ts'
import { groupFields } from '../../projections/sessions/count-groups.ts'
import { rollUpOnce } from '../../projections/sessions/roll-up.ts'
import { type Environment, startEnvironment } from '../environment.ts'
import { describeMachine } from '../machine.ts'
import { describeRun, row, writeTable } from '../report.ts'
import { quantile } from '../stats.ts'
import { measurePaint, paintTable } from './paint.ts'
import { fillRelated, fillSessions } from './rows.ts'

// Fills a database with sessions and measures the console's requests and pages. A complete run is written to the report.
const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '10000000' },
    /** Duration of the requests, without filling the database and the pages. */
    minutes: { type: 'string', default: '4' },
    /** Measures only requests whose kind or query has this text, or only `pages`. */
    only: { type: 'string', default: '' },
  },
})

// Newest sessions whose details can be read.
const decisions = 100_000

/** Fills the database while no server uses it. The decisions are copies of simulated ones. */
async function fill(environment: Environment, pool: pg.Pool): Promise<void> {
  const server = await environment.startAllInOne()
  execFileSync(process.execPath, ['services/cli/main.ts', 'simulate', '--sessions', '200'], {
    env: { ...process.env, DATA_DIR: environment.settings.DATA_DIR },
  })
  const { organization_id: organization } = await environment.credentials()
  await server.stop()
  const [rows, endsAt] = [Number(flags.rows), Date.now()]
  await fillSessions(pool, { rows, endsAt, organization })
  await fillRelated(pool, decisions)
  while (await rollUpOnce(pool, endsAt - (endsAt % 3_600_000)));
}

interface Server {
  url: string
  key: string
}

const minute = 60_000
const hours = (count: number, ago = 0): string => {
  const now = Math.ceil(Date.now() / minute) * minute
  const iso = (ago: number) => new Date(now - ago * 60 * minute).toISOString()
  return `since=${iso(count + ago)}&until=${iso(ago)}`
}

// Values that are frequent, rare (one in a million sessions), and absent, within the last 30 days.
const filters: Record<string, string[]> = {
  verdict: ['human', 'bot', 'bot&verdict=inconclusive'],
  country: ['US', 'AQ', 'ZZ'],
  asn: ['1007', '4200000001', '1'],
  network: ['hosting', 'tor', 'callback_proxy'],
  page_path: ['/login', '/reviews/20', '/none'],
  page_host: ['shop.example.com', 'rare.example.com', 'none.example'],
  browser: ['chrome', 'konqueror', 'none'],
  os: ['windows', 'haiku', 'none'],
  ip: ['11.0.0.0/16', '192.0.2.1', '10.0.0.0/8'],
  signal: ['webdriver_detected', 'velocity_users', 'none'],
  attribution: ['tool:playwright', 'tool:rare', 'none'],
  agent_status: ['none', 'verified', 'declared'],
  score_min: ['70', '100'],
  handed_off: ['true', 'false'],
  mark: ['none', 'bot', 'fraud'],
  'country[not]': ['US'],
}
const pairs = [
  'verdict=bot&page_path=/login',
  'verdict=bot&country=AQ',
  'verdict=bot&asn=4200000001',
  'country=DE&browser=firefox',
  'signal=webdriver_detected&page_path=/signup',
  'network=hosting&verdict=human',
]
const searches = ['/login', 'firefox', '11.0.7', 'user_12345', 'nothing has this text']

interface Request {
  /** Requests of a kind share a row of the table. */
  kind: string
  query: string
  path: string
}

async function requests(server: Server): Promise<Request[]> {
  const [day, dayBefore, month] = [hours(24), hours(24, 24), hours(720)]
  const { data } = z
    .object({
      data: z.array(
        z.object({ id: z.string(), visitor_fingerprint: z.object({ id: z.string() }).nullable() }),
      ),
    })
    .parse(await get(server, `/v1/sessions?${hours(24, 1)}&limit=50`))
  const session = data.at(-1)
  const visitor = session?.visitor_fingerprint?.id
  const request = (kind: string, path: string, query: string) => ({
    kind,
    query,
    path: `/v1/${path}${query}`,
  })
  const list = (kind: string, period: string, query = '') =>
    request(kind, `sessions?${period}&limit=50&`, query)
  const count = (kind: string, period: string, query: string) =>
    request(kind, `sessions/aggregates?${period}&`, query)
  const charts = ['', '&verdict=bot', '&country=US', '&page_path=/login', '&signal=lone_click']
  return [
    list('list, 24 h', day),
    list('list, 30 d', month),
    ...Object.entries(filters).flatMap(([field, items]) =>
      items.map((value) => list('list by a filter, 30 d', month, `${field}=${value}`)),
    ),
    ...pairs.map((pair) => list('list by two filters, 30 d', month, pair)),
    ...searches.map((text) => list('search, 30 d', month, `search=${encodeURIComponent(text)}`)),
    ...charts.map((filter) => count('chart, 24 h', day, `interval=hour&group_by=verdict${filter}`)),
    count('chart, 24 h', day, 'interval=hour&group_by=page_path&top=5'),
    count('chart, 24 h', dayBefore, 'group_by=verdict'),
    count('chart, 7 d', hours(168), 'interval=hour&group_by=verdict'),
    count('chart, 30 d', month, 'interval=day&group_by=verdict'),
    ...groupFields.flatMap((field) => [
      count('count by a field, 24 h', day, `group_by=${field}&top=25`),
      count('count by a field, 30 d', month, `group_by=${field}&top=25`),
    ]),
    count('count by two fields, 24 h', day, 'group_by=page_host,handed_off&top=100'),
    count('count by two fields, 24 h', day, 'group_by=agent_provider,agent_status&top=20'),
    request('anomalies, 24 h', `sessions/anomalies?${day}`, ''),
    request('visitors', 'fingerprints?limit=50&', ''),
    request('visitors', 'fingerprints?limit=50&', 'sort=seen_count'),
    request('session', `sessions/${session?.id}?`, 'include=score&include=log'),
    request('visitor', `fingerprints/${visitor}`, ''),
    list('sessions of a visitor', `visitor_id=${visitor}`),
  ].filter(({ kind, query }) => `${kind} ${query}`.includes(flags.only))
}

interface Timing extends Request {
  /** Milliseconds; Infinity if the query timed out. */
  warm: number[]
  cold: number[]
}

/** Repeats each request for its part of the time, first with empty PostgreSQL buffers. */
async function measure(server: Server, pool: pg.Pool): Promise<Timing[]> {
  const all = await requests(server)
  const timings: Timing[] = []
  for (const request of all) {
    const timing: Timing = { ...request, warm: [], cold: [] }
    const end = performance.now() + (Number(flags.minutes) * minute) / all.length
    while (timing.cold.length < 2) {
      await evictBuffers(pool)
      timing.cold.push(await duration(server, request))
    }
    while (timing.warm.length < 3 || performance.now() < end)
      timing.warm.push(await duration(server, request))
    console.log(row([request.kind, request.query, ...timesOf([timing])]))
    timings.push(timing)
  }
  return timings
}

const evictBuffers = (pool: pg.Pool) => pool.query('select pg_buffercache_evict_all()')

async function duration(server: Server, { path }: Request): Promise<number> {
  const begun = performance.now()
  return (await get(server, path)) === undefined ? Infinity : performance.now() - begun
}

function timesOf(timings: Timing[]): string[] {
  const ascending = (name: 'warm' | 'cold') =>
    timings.flatMap((timing) => timing[name]).toSorted((a, b) => a - b)
  const [warm, cold] = [ascending('warm'), ascending('cold')]
  const times = [quantile(warm, 0.5), quantile(warm, 0.95), quantile(cold, 0.5), quantile(cold, 1)]
  return times.map((ms) => ms.toFixed(0))
}

/** Returns the response's body, or undefined if the server's query timed out. */
async function get({ url, key }: Server, path: string): Promise<unknown> {
  const response = await fetch(url + path, { headers: { Authorization: `Bearer ${key}` } })
  const body = await response.json()
  if (response.ok) return body
  if (response.status === 503) return undefined
  throw new Error(`${path}: ${response.status} ${JSON.stringify(body)}`)
}

function tableOf(timings: Timing[]): string[] {
  const columns = ['request', 'variants', 'warm p50 ms', 'p95', 'cold p50 ms', 'max', 'slowest']
  const rows = [...Map.groupBy(timings, ({ kind }) => kind)].map(([kind, list]) => {
    const slowest = list.toSorted((a, b) => Math.max(...b.cold) - Math.max(...a.cold))[0]
    const query = decodeURIComponent(slowest?.query ?? '')
    return row([kind, String(list.length), ...timesOf(list), query && `\`${query}\``])
  })
  return [row(columns), row(columns.map(() => '-')), ...rows]
}

const [loadBefore = 0] = os.loadavg()
const environment = await startEnvironment(undefined)
const settings = { jit: 'off', statement_timeout: '0' }
const pool = createPool({ url: environment.databaseUrl, settings })
try {
  const begun = performance.now()
  await fill(environment, pool)
  const filled = `${Number(flags.rows).toLocaleString('en')} sessions, filled in ${Math.round((performance.now() - begun) / 1000)} s`
  const child = await environment.startAllInOne()
  const { live } = await environment.credentials()
  const server = { url: child.url, key: live.secret_key }
  await pool.query('create extension pg_buffercache')
  const measured = async () => {
    const timings = await measure(server, pool)
    const options = { ...server, evict: () => evictBuffers(pool), rounds: 40 }
    const isWithPages = 'pages'.includes(flags.only)
    return [
      ...tableOf(timings),
      '',
      ...(isWithPages ? paintTable(await measurePaint(options)) : []),
    ]
  }
  const tables = await measured().finally(() => child.stop())
  const machine = await describeMachine(environment.databaseUrl, undefined)
  const date = new Date().toISOString().slice(0, 10)
  const run = `${describeRun({ date, loadBefore, machine })} ${filled}.`
  const table = [run, '', ...tables].join('\n')
  if (flags.rows === '10000000' && flags.only === '') await writeTable(table, 'history')
  console.log(`\n${table}`)
} finally {
  await pool.end()
  await environment.stop()
}
