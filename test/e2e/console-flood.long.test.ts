import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { generateToken } from '../../infra/crypto/tokens.ts'
import { operator } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'

let database: TestDatabase
let server: ServerProcess
let cookie = ''

beforeAll(async () => {
  database = await createTestDatabase()
  const settings = {
    DATABASE_URL: database.url,
    TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
  }
  server = await startServerProcess(['serve', '--roles', 'projections,api'], settings)
  const { secret } = await operator(settings).organization()
  const login = await fetch(`${server.baseUrl}/console/api/login`, {
    method: 'POST',
    headers: { origin: server.baseUrl, 'content-type': 'application/json' },
    body: JSON.stringify({ secret_key: secret.key }),
  })
  expect(login.status).toBe(200)
  cookie = login.headers.getSetCookie()[0]?.split(';')[0] ?? ''
}, 60_000)

afterAll(async () => {
  await server?.end('SIGTERM')
  await database?.drop()
})

const ask = (headers: Record<string, string>) =>
  fetch(`${server.baseUrl}/console/api/session`, { headers }).then(async (answer) => {
    await answer.arrayBuffer()
    return answer.status
  })

const honestRequests = 40
const atOnce = 64

/** The median time of honest requests, milliseconds, while others come without end. */
async function honestMs(stranger: () => Record<string, string>) {
  let isOver = false
  const statuses = new Map<number, number>()
  const strangers = Array.from({ length: atOnce }, async () => {
    while (!isOver) {
      const status = await ask(stranger())
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  })
  const times: number[] = []
  for (let i = 0; i < honestRequests; i++) {
    const from = performance.now()
    expect(await ask({ cookie })).toBe(200)
    times.push(performance.now() - from)
  }
  isOver = true
  await Promise.all(strangers)
  return { median: times.sort((a, b) => a - b)[honestRequests / 2] ?? 0, statuses }
}

/** Each look-up of a session reads the table once. Postgres counts within a second or so. */
async function tableReads(): Promise<number> {
  const { rows } = await database.pool.query<{ reads: string }>(
    `select seq_scan + coalesce(idx_scan, 0) as reads from pg_stat_user_tables
     where schemaname = 'tidegate' and relname = 'console_sessions'`,
  )
  return Number(rows[0]?.reads)
}

it('a flood of well-formed tokens costs a logged-in person behind the same address no more than one of none', async () => {
  const forged = () => ({ cookie: `tidegate_console=${generateToken('contok', randomBytes)}` })
  await honestMs(() => ({}))
  const none = await honestMs(() => ({}))
  const from = Date.now()
  const before = await tableReads()
  const tokens = await honestMs(forged)
  const seconds = (Date.now() - from) / 1000
  const strangers = [...tokens.statuses.values()].reduce((all, count) => all + count, 0)
  expect([...tokens.statuses.keys()].sort()).toEqual([401, 429])
  await eventually(async () =>
    expect((await tableReads()) - before).toBeGreaterThanOrEqual(honestRequests),
  )
  const lookups = (await tableReads()) - before - honestRequests
  console.info({ none: none.median, tokens: tokens.median, strangers, lookups, seconds })
  // 50 at once and 10 a second, and what Postgres counts late.
  expect(lookups).toBeLessThanOrEqual(50 + 10 * Math.ceil(seconds) + 2 * honestRequests)
  expect(lookups).toBeLessThan(strangers / 4)
  expect(tokens.median).toBeLessThan(2 * none.median)
}, 120_000)
