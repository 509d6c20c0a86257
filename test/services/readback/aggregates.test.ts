import { expect, test } from 'vitest'
import { sessionScored, visitorLink } from '../../support/session-scored.ts'
import { expectRefused, id, useReadback } from './support.ts'

const start = 1_760_000_000_000
const plain = sessionScored()

const readback = await useReadback()
const decision = (n: number) => ({
  session_id: id('sid', n),
  event_id: id('evt', n),
  evaluated_at: start + n * 60_000,
  verdict: n === 1 ? ('bot' as const) : ('human' as const),
  visitor: visitorLink({ id: id('vid', n % 2) }),
  browser: { ...plain.browser, name: n === 3 ? null : 'Chrome' },
})
await readback.score(...[1, 2, 3, 4].map(decision))

const get = (query: string, key?: string) =>
  readback.send({ url: `/v1/sessions/aggregates?${query}`, ...(key && { key }) })

test('GET /v1/sessions/aggregates counts all sessions, and reports that the count is complete', async () => {
  const { status, headers, body } = await get('until=2025-10-10T00:00:00Z')
  expect(status).toBe(200)
  expect(headers['x-filters-applied']).toBe('until')
  expect(body.data).toEqual({
    object: 'session_aggregates',
    since: '2025-10-09T08:54:20.000Z',
    until: '2025-10-10T00:00:00.000Z',
    is_complete: true,
    sessions: 4,
    ended: 0,
    visitors: 2,
    users: 0,
    distinct_missing: null,
    groups: [{ start: null, kind: 'value', values: {}, sessions: 4 }],
  })
})

test('GET /v1/sessions/aggregates?distinct=false leaves out visitors and users', async () => {
  const { headers, body } = await get('until=2025-10-10T00:00:00Z&distinct=false')
  expect(headers['x-filters-applied']).toBe('until')
  const missing = { visitors: null, users: null, distinct_missing: 'not_requested' }
  expect(body.data).toMatchObject({ sessions: 4, ...missing })
})

test('GET /v1/sessions/aggregates groups by up to two fields, largest first, with the filters of the list', async () => {
  const { body } = await get('group_by=browser,verdict&verdict=human&top=1')
  expect(body.data.groups).toEqual([
    { start: null, kind: 'value', values: { browser: 'Chrome', verdict: 'human' }, sessions: 2 },
    { start: null, kind: 'other', values: {}, sessions: 1 },
  ])
  const twice = await get('group_by=browser&group_by=verdict&verdict=human&top=1')
  expect(twice.body.data.groups).toEqual(body.data.groups)
})

test('intervals start in UTC', async () => {
  const { body } = await get(
    'interval=minute&since=2025-10-09T08:55:00Z&until=2025-10-09T08:57:00Z',
  )
  expect(body.data.groups.map(({ start }: { start: string }) => start)).toEqual([
    '2025-10-09T08:55:00.000Z',
    '2025-10-09T08:56:00.000Z',
  ])
  const days = await get('interval=day&until=2025-10-10T00:00:00Z')
  expect(days.body.data.groups).toMatchObject([{ start: '2025-10-09T00:00:00.000Z', sessions: 4 }])
})

test('an organization without sessions has zero counts', async () => {
  const { body } = await get('group_by=country', (await readback.organization()).key)
  expect(body.data).toMatchObject({ sessions: 0, visitors: 0, groups: [], is_complete: true })
})

test.each([
  'search=abc',
  'search=',
  'since[not]=2025-10-10T00:00:00Z',
  'contry[not]=FR',
  'since=2026-11-27T00:00:00Z&until=2026-11-26T00:00:00Z',
  'score_min=9&score_max=8',
  'interval=week',
  'interval=minute&since=2025-01-01T00:00:00Z',
  'group_by=visitor_id',
  'group_by=country,asn,network',
  'top=0',
  'top=101',
  'country=DEU',
])('%s is rejected, naming the parameter', async (query) => {
  expectRefused(await get(query), query)
})
