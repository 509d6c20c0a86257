import { beforeAll, expect, test } from 'vitest'
import { hourMs } from '../../../projections/sessions/hours.ts'
import { rollUpOnce } from '../../../projections/sessions/roll-up.ts'
import type { SessionScored } from '../../../schemas/events.ts'
import { sessionScored } from '../../support/session-scored.ts'
import { expectRefused, id, useReadback } from './support.ts'

const readback = await useReadback()
const now = Date.parse('2025-11-01T09:40:00Z')
const { request, network, signals_fired } = sessionScored()
let n = 0

function session(
  at: number,
  path: string,
  facts: Partial<SessionScored> = {},
): Partial<SessionScored> {
  n++
  return {
    session_id: id('sid', n),
    event_id: id('evt', n),
    evaluated_at: at,
    verdict: 'human',
    request: { ...request, url: `https://shop.example${path}` },
    network: { ...network, routing: { asn: `AS${64_500 + (n % 5)}`, organization: null } },
    signals_fired: fired('natural_typing'),
    attribution: null,
    ...facts,
  }
}

const fired = (...slugs: string[]) =>
  slugs.flatMap((signal) => signals_fired.map((fact) => ({ ...fact, signal })))

const playwright = (at: number, path: string) =>
  session(at, path, {
    verdict: 'bot',
    signals_fired: fired('webdriver_detected', 'playwright_globals', 'fresh_proofs'),
    attribution: {
      labels: [{ kind: 'tool', value: 'playwright', label: 'Playwright', confidence: 90 }],
      behaviors: [],
    },
  })

/** Returns a day of usual traffic: five paths, and a few bots. */
const usualDay = (until: number) =>
  Array.from({ length: 480 }, (_, i) => {
    const at = until - 24 * hourMs + i * 180_000
    const path = ['/', '/login', '/signup', '/checkout', '/search'][i % 5] ?? '/'
    return i % 24 === 0 ? playwright(at, path) : session(at, path)
  })

const get = async (query = '', key?: string) =>
  readback.send({ url: `/v1/sessions/anomalies?${query}`, ...(key && { key }) })
const until = (at: number) => `until=${new Date(at).toISOString()}`

beforeAll(async () => {
  const wave = Array.from({ length: 250 }, (_, i) =>
    playwright(now - 15 * 60_000 + i * 2000, '/login'),
  )
  await readback.score(...usualDay(now - 24 * hourMs), ...usualDay(now), ...wave)
  while (await rollUpOnce(readback.core.pool, now - (now % hourMs)));
})

test('an attack on a usual day is one anomaly with its tool and path', async () => {
  const { status, body } = await get(until(now))
  expect(status).toBe(200)
  expect(body.data).toMatchObject({
    since: '2025-10-31T09:40:00.000Z',
    until: '2025-11-01T09:40:00.000Z',
    has_history: true,
    baseline_days: 1,
    is_complete: true,
    sessions: 730,
  })
  expect(body.data.anomalies).toHaveLength(1)
  const [{ values, sessions, expected, started_at, ended_at, series }] = body.data.anomalies
  expect(values).toEqual(
    expect.arrayContaining([
      { field: 'attribution', value: 'tool:playwright', sessions },
      { field: 'page_path', value: '/login', sessions: expect.any(Number) },
    ]),
  )
  expect(values.map(({ value }: { value: string }) => value)).not.toContain('fresh_proofs')
  expect(Math.abs(sessions - expected - 250)).toBeLessThan(15)
  expect([started_at, ended_at]).toEqual(['2025-11-01T09:25:00.000Z', '2025-11-01T09:35:00.000Z'])
  expect(series).toHaveLength(25)
})

test('half an hour of an attack on a busy day is one anomaly, with its times and path', async () => {
  const { organizationId, key } = await readback.organization()
  const start = now - 8.5 * hourMs
  const inBusy = (facts: Partial<SessionScored>) => ({ ...facts, organization_id: organizationId })
  await readback.score(...[...usualDay(now - 24 * hourMs), ...usualDay(now)].map(inBusy))
  await readback.core.pool.query(
    `insert into read.sessions select (jsonb_populate_record(s, jsonb_build_object(
       'session_id', s.session_id || '-' || k, 'event_id', s.event_id || '-' || k))).*
     from read.sessions s, generate_series(1, 19) k where s.organization_id = $1`,
    [organizationId],
  )
  const wave = Array.from({ length: 250 }, (_, i) => playwright(start + i * 7200, '/login'))
  await readback.score(...wave.map(inBusy))
  while (await rollUpOnce(readback.core.pool, now - (now % hourMs)));
  const { body } = await get(until(now), key)
  expect(body.data.sessions).toBe(20 * 480 + 250)
  expect(body.data.anomalies).toMatchObject([
    {
      values: expect.arrayContaining([
        { field: 'attribution', value: 'tool:playwright', sessions: expect.any(Number) },
        { field: 'page_path', value: '/login', sessions: expect.any(Number) },
      ]),
      started_at: '2025-11-01T01:10:00.000Z',
      ended_at: '2025-11-01T01:40:00.000Z',
    },
  ])
  const [{ sessions, expected, series }] = body.data.anomalies
  expect(Math.abs(sessions - expected - 250)).toBeLessThan(25)
  expect(series).toHaveLength(25)
})

test('a usual day has no anomaly, and trust signals never are one', async () => {
  const { body } = await get(until(now - 20 * 60_000))
  expect(body.data).toMatchObject({ has_history: true, anomalies: [] })
})

test('a period of an hour is compared with the same hour, in intervals of five minutes', async () => {
  const { body } = await get(`since=2025-11-01T08:40:00Z&${until(now)}`)
  expect(body.data.sessions).toBe(270)
  expect(body.data.has_history).toBe(false)
  const longer = await get(`since=2025-11-01T06:40:00Z&${until(now)}`)
  expect(longer.body.data).toMatchObject({ has_history: true, sessions: 310 })
  expect(longer.body.data.anomalies).toMatchObject([{ started_at: '2025-11-01T09:25:00.000Z' }])
  expect(longer.body.data.anomalies[0].series).toHaveLength(36)
})

test('a longer period is compared for its last day', async () => {
  const { body } = await get(`since=2025-10-01T00:00:00Z&${until(now)}`)
  expect(body.data).toMatchObject({ since: '2025-10-31T09:40:00.000Z', sessions: 730 })
})

test('without a day of sessions there is no history', async () => {
  const { body } = await get(until(now - 25 * hourMs))
  expect(body.data).toMatchObject({ has_history: false, baseline_days: 0, anomalies: [] })
  const { key } = await readback.organization()
  const none = await get('', key)
  expect(none.body.data).toMatchObject({ has_history: false, sessions: 0, anomalies: [] })
})

test.each(['since=yesterday', 'since=2025-11-02T00:00:00Z&until=2025-11-01T00:00:00Z'])(
  '%s is rejected, naming the parameter',
  async (query) => expectRefused(await get(query), query),
)
