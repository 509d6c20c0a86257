import { execFileSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { migrate } from '../../infra/event-store/builds.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { type GroupField, groupFields } from '../../projections/sessions/count-groups.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { rollUpOnce } from '../../projections/sessions/roll-up.ts'
import { quantile } from '../stats.ts'
import { fillRelated, fillSessions } from './rows.ts'

// Measures the console's requests with many sessions:
//   node bench/history/main.ts --fill 10000000 --database postgres://... --organization org_...
//   node bench/history/main.ts --url http://127.0.0.1:8787 --key sk_live_... [--cold 'command that empties all caches']
const { values } = parseArgs({
  options: {
    fill: { type: 'string' },
    database: { type: 'string', default: process.env.DATABASE_URL ?? '' },
    organization: { type: 'string' },
    url: { type: 'string', default: 'http://127.0.0.1:8787' },
    key: { type: 'string', default: '' },
    /** Runs of each request. */
    times: { type: 'string', default: '20' },
    /** Shell command before each cold run. */
    cold: { type: 'string' },
    /** Measures only requests whose name has this text. */
    only: { type: 'string', default: '' },
  },
})

async function fill(rows: number): Promise<void> {
  const pool = createPool({
    url: values.database,
    settings: { jit: 'off', statement_timeout: '0' },
  })
  const endsAt = Date.now()
  await migrate(pool, [sessionsProjection])
  await fillSessions(pool, { rows, endsAt, organization: values.organization })
  await fillRelated(pool, rows / 10)
  while (await rollUpOnce(pool, endsAt - (endsAt % 3_600_000)));
  await pool.end()
}

const minute = 60_000
const hours = (count: number, ago = 0): string => {
  const now = Math.ceil(Date.now() / minute) * minute
  const iso = (ago: number) => new Date(now - ago * 60 * minute).toISOString()
  return `since=${iso(count + ago)}&until=${iso(ago)}`
}
const [day, dayBefore, month] = [hours(24), hours(24, 24), hours(720)]

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
  name: string
  path: string
}

async function requests(): Promise<Request[]> {
  const { data } = z
    .object({
      data: z.array(
        z.object({ id: z.string(), visitor_fingerprint: z.object({ id: z.string() }).nullable() }),
      ),
    })
    .parse(await get(`/v1/sessions?${hours(24, 1)}&limit=50`))
  const session = data.at(-1)
  const counts = (period: string, more: string) => `/v1/sessions/aggregates?${period}&${more}`
  const groups = (length: string, period: string) =>
    groupFields.map((field: GroupField) => ({
      name: `count ${length} by ${field}`,
      path: counts(period, `group_by=${field}&top=25`),
    }))
  const list = (name: string, query: string) => ({
    name: `list ${name}`,
    path: `/v1/sessions?${query}&limit=50`,
  })
  return [
    list('24 h', day),
    list('30 d', month),
    ...Object.entries(filters).flatMap(([field, items]) =>
      items.map((value) => list(`30 d, ${field}=${value}`, `${month}&${field}=${value}`)),
    ),
    ...pairs.map((pair) => list(`30 d, ${pair}`, `${month}&${pair}`)),
    ...searches.map((text) =>
      list(`30 d, search ${text}`, `${month}&search=${encodeURIComponent(text)}`),
    ),
    { name: 'chart 24 h', path: counts(day, 'interval=hour&group_by=verdict') },
    { name: 'chart 24 h before', path: counts(dayBefore, 'group_by=verdict') },
    { name: 'chart 7 d', path: counts(hours(168), 'interval=hour&group_by=verdict') },
    { name: 'chart 30 d', path: counts(month, 'interval=day&group_by=verdict') },
    { name: 'chart 24 h, bots', path: counts(day, 'interval=hour&group_by=verdict&verdict=bot') },
    {
      name: 'chart 24 h, country=US',
      path: counts(day, 'interval=hour&group_by=verdict&country=US'),
    },
    {
      name: 'chart 24 h, path=/login',
      path: counts(day, 'interval=hour&group_by=verdict&page_path=/login'),
    },
    {
      name: 'chart 24 h, signal',
      path: counts(day, 'interval=hour&group_by=verdict&signal=webdriver_detected'),
    },
    { name: 'chart 24 h, by path', path: counts(day, 'interval=hour&group_by=page_path&top=5') },
    {
      name: 'count 24 h by host and hand-off',
      path: counts(day, 'group_by=page_host,handed_off&top=100'),
    },
    {
      name: 'count 24 h by agent',
      path: counts(day, 'group_by=agent_provider,agent_status&top=20'),
    },
    ...groups('24 h', day),
    ...groups('30 d', month),
    { name: 'visitors', path: '/v1/fingerprints?limit=50' },
    { name: 'visitors by sessions', path: '/v1/fingerprints?limit=50&sort=seen_count' },
    { name: 'session', path: `/v1/sessions/${session?.id}?include=score&include=log` },
    { name: 'visitor', path: `/v1/fingerprints/${session?.visitor_fingerprint?.id}` },
    list('of a visitor', `visitor_id=${session?.visitor_fingerprint?.id}`),
  ].filter(({ name }) => name.includes(values.only))
}

async function measure(): Promise<void> {
  console.log('| request | warm p50 ms | p95 | cold p50 ms | p95 |\n| - | - | - | - | - |')
  for (const { name, path } of await requests()) {
    await get(path)
    const warm = await repeat(Number(values.times), async () => {}, path)
    const { cold: command } = values
    const cold = command ? await repeat(3, () => empty(command), path) : []
    console.log(`| ${name} | ${[...warm, ...cold].map((ms) => ms.toFixed(0)).join(' | ')} |`)
  }
}

async function repeat(times: number, before: () => Promise<void>, path: string): Promise<number[]> {
  const durations: number[] = []
  for (let i = 0; i < times; i++) {
    await before()
    const begun = performance.now()
    const isTimeout = (await get(path)) === undefined
    durations.push(isTimeout ? Infinity : performance.now() - begun)
  }
  const sorted = durations.toSorted((a, b) => a - b)
  return [quantile(sorted, 0.5), quantile(sorted, 0.95)]
}

// Reconnects with a request for other sessions, so that only buffers are cold.
async function empty(command: string): Promise<void> {
  execFileSync('sh', ['-c', command])
  const reconnects = () => get(`/v1/sessions?${hours(1, 700)}&limit=1`)
  for (let i = 0; i < 100; i++) {
    const isConnected = await reconnects().then(
      () => true,
      () => false,
    )
    if (isConnected) return
    await delay(100)
  }
  throw new Error('the server did not reconnect')
}

/** Returns the body, or undefined if the server's query timed out. Waits for the rate limit. */
async function get(path: string): Promise<unknown> {
  const headers = { Authorization: `Bearer ${values.key}` }
  for (;;) {
    const response = await fetch(values.url + path, { headers })
    const body = await response.json()
    if (response.ok) return body
    if (response.status === 503) return undefined
    if (response.status !== 429)
      throw new Error(`${path}: ${response.status} ${JSON.stringify(body)}`)
    await delay(Number(response.headers.get('retry-after') ?? 1) * 1000)
  }
}

if (values.fill) await fill(Number(values.fill))
else await measure()
