import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fillSessions } from '../../bench/history/rows.ts'
import { sendExample } from './call.ts'
import { costly, hostile } from './costly-inputs.ts'
import type { Example } from './endpoint.ts'
import { endpoints, openEndpoints } from './examples.ts'
import { createMatrix } from './things.ts'
import { startWorld, type World } from './world.ts'

const runs = 20
/** Trials of each candidate, to find the most expensive of an endpoint. */
const trials = 3
const most = 150
const sessions = 60_000

let world: World
let matrix: Awaited<ReturnType<typeof createMatrix>>
let sessionIds: string[]
/** CPU milliseconds of `GET /v1/sessions/{id}`. */
let usual: number
const measured: { name: string; ms: number; units: number; status: number }[] = []

beforeAll(async () => {
  world = await startWorld({ validates: false })
  matrix = await createMatrix(world)
  const { own, context } = matrix
  await Promise.all([context.webhook({ fresh: false }), context.keyId({ fresh: false })])
  sessionIds = await fill(own)
}, 180_000)
afterAll(() => world.stop())
afterAll(() => {
  const worst = measured.toSorted((a, b) => b.ms / b.units - a.ms / a.units).slice(0, 10)
  console.log(`GET /v1/sessions/{id} takes ${usual.toFixed(2)} ms; the most expensive by unit:`)
  for (const { name, ms, units, status } of worst)
    console.log(
      `${(ms / units / usual).toFixed(1)} times: ${ms.toFixed(1)} ms, ${units} units, ${status} ${name}`,
    )
})

/** Adds sessions to the read model, and returns the ids of some. */
async function fill(organizationId: string): Promise<string[]> {
  const { pool } = world.deps
  await fillSessions(pool, { rows: sessions, endsAt: world.now.ms })
  await pool.query('update sessions_b1.sessions set organization_id = $1', [organizationId])
  // Parallel workers end before their time could be read.
  await pool.query('alter table sessions_b1.sessions set (parallel_workers = 0)')
  await pool.query('vacuum analyze sessions_b1.sessions')
  const { rows } = await pool.query<{ session_id: string }>(
    `select session_id from sessions_b1.sessions where session_id ~ '^sid_[0-9a-hjkmnp-tv-z]{26}$' limit 1000`,
  )
  return rows.map(({ session_id }) => session_id)
}

/** CPU milliseconds of this process, which has the server, and of all connections of its database. */
async function startClock() {
  const { rows } = await world.deps.pool.query<{ pid: number }>(
    'select pid from pg_stat_activity where datname = current_database()',
  )
  const ofPostgres = () => rows.reduce((sum, { pid }) => sum + nanoseconds(pid), 0) / 1e6
  return () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000 + ofPostgres()
  }
}

function nanoseconds(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0])
  } catch {
    return 0
  }
}

async function send(example: Example, credential: Record<string, string>) {
  const { status, headers } = await sendExample(world.app, example, credential)
  return { status, units: Number(headers['x-ratelimit-cost'] ?? 1) }
}

interface Input {
  name: string
  make: (call: number) => Promise<Example>
}

/** Sends the input so many times, and returns the median. */
async function time({ name, make }: Input, headers: Record<string, string>, times: number) {
  const all: number[] = []
  const clock = await startClock()
  let last = { status: 0, units: 1 }
  for (let call = 0; call < times; call++) {
    const example = await make(call)
    const before = clock()
    last = await send(example, headers)
    all.push(clock() - before)
  }
  all.sort((a, b) => a - b)
  return { name, ms: all[Math.floor(times / 2)] ?? 0, ...last, units: Math.max(1, last.units) }
}

async function measure(input: Input, headers: Record<string, string>) {
  const result = await time(input, headers, runs)
  measured.push(result)
  return result
}

/** Measures the input that trials show to cost the most by unit. */
async function measureWorst(inputs: Input[], headers: Record<string, string>) {
  const costs: number[] = []
  for (const input of inputs) {
    const { ms, units } = await time(input, headers, trials)
    costs.push(ms / units)
  }
  const worst = inputs[costs.indexOf(Math.max(...costs))]
  return worst ? [await measure(worst, headers)] : []
}

test('the cost of reading a session is measured, which others are compared with', async () => {
  const { headers, platform } = matrix.rightFor('getSession')
  const example = await endpoints.getSession?.example({
    ...matrix.context,
    platform,
    succeeds: true,
  })
  if (!example) throw new Error('getSession has no example')
  const input = { name: 'getSession', make: async () => example }
  await time(input, headers, trials)
  const { ms, status } = await measure(input, headers)
  expect(status).toBe(200)
  usual = ms
})

/** Legal inputs are made anew for each call, so that it succeeds; a hostile one is refused each time. */
async function expectBounded(
  id: string,
  make: () => Example | Promise<Example>,
  headers: Record<string, string> = {},
): Promise<void> {
  const legal = costly[id] ?? ((example: Example) => [example])
  const first = await make()
  const legalInputs = legal(first, { sessionIds, call: 0 }).map((_, place) => ({
    name: `${id}, legal ${place}`,
    make: async (call: number) => legal(await make(), { sessionIds, call })[place] ?? none(id),
  }))
  const hostileInputs = hostile(first).map((input, place) => ({
    name: `${id}, hostile ${place}`,
    make: async () => input,
  }))
  const results = [
    ...(await measureWorst(legalInputs, headers)),
    ...(await measureWorst(hostileInputs, headers)),
  ]
  const over = results.filter(({ ms, units }) => ms / units / usual > most)
  expect(over).toEqual([])
}

test.each(Object.keys(endpoints))(
  '%s',
  async (id) => {
    const { headers, platform } = matrix.rightFor(id)
    const endpoint = endpoints[id] ?? none(id)
    const example = async (succeeds: boolean) =>
      endpoint.example({ ...matrix.context, platform, succeeds })
    // Once the organization has as many of something as it can have, those that stay serve again.
    const make = () => example(costly[id] === undefined).catch(() => example(false))
    await expectBounded(id, make, headers)
  },
  600_000,
)

test.each(Object.keys(openEndpoints))(
  '%s, without a key',
  async (id) => {
    await expectBounded(id, () => openEndpoints[id]?.example(matrix.context) ?? none(id))
  },
  300_000,
)

function none(id: string): never {
  throw new Error(`${id} has no example`)
}
