import { expect, test } from 'vitest'
import { sessionScored, visitorLink } from '../../support/session-scored.ts'
import { id, useReadback } from './support.ts'

const readback = await useReadback()
const { now } = readback
const { request, network } = sessionScored()
const minute = 60_000
const day = 1440 * minute
const visitor = visitorLink({ id: id('vid', 1) })
const toolLabel = {
  kind: 'tool',
  value: 'playwright',
  label: 'Playwright',
  confidence: 97,
} as const
const attribution = { labels: [toolLabel], behaviors: [] }
const routing = { asn: '64500', organization: 'Example' }

/** Scores a session that shares the visitor, address, network, path and tool with the others by default. */
const session = (n: number, age: number, changes = {}) => ({
  session_id: id('sid', n),
  event_id: id('evt', n),
  created_at: now.ms - age - 30,
  observed_at: now.ms - age - 20,
  evaluated_at: now.ms - age,
  visitor,
  request,
  network: { ...network, routing },
  attribution,
  ...changes,
})
const elsewhere = { ...request, url: 'https://shop.example/other', ip_address: '198.51.100.9' }
await readback.score(
  session(1, minute, { event_id: id('evt', 100), reason: 'first', is_provisional: true }),
  session(1, 0, { created_at: now.ms - minute - 30 }),
  session(2, 2 * minute),
  session(3, 2 * day),
  session(4, 40 * day),
  session(5, minute, { request: elsewhere, visitor: null, attribution: null }),
  session(6, minute, { visitor: visitorLink({ id: id('vid', 2) }) }),
)
const patched = await readback.send({
  method: 'PATCH',
  url: `/v1/sessions/${id('sid', 1)}`,
  body: { client_user_id: 'ann' },
})
expect(patched.status).toBe(200)
now.ms += 1000
await readback.send({
  method: 'POST',
  url: '/v1/marks',
  body: { session_ids: [id('sid', 1)], label: 'fraud' },
})
await readback.caughtUp()

const get = async (include: string) =>
  (await readback.send({ url: `/v1/sessions/${id('sid', 1)}${include}` })).body.data

test('related sessions are counted as the list counts them', async () => {
  const { related } = await get('?include=related')
  const counts = related.map((row: { field: string; value: string; sessions: number }) => [
    row.field,
    row.value,
    row.sessions,
  ])
  expect(counts).toEqual([
    ['visitor_id', id('vid', 1), 3],
    ['client_user_id', 'ann', 1],
    ['ip', request.ip_address, 4],
    ['asn', '64500', 4],
    ['page_path', new URL(request.url).pathname, 3],
    ['attribution', 'tool:playwright', 3],
  ])
  for (const { field, value, sessions, since } of related) {
    const query = new URLSearchParams({ [field]: value, since, limit: '200' })
    const { body } = await readback.send({ url: `/v1/sessions?${query}` })
    expect([field, body.data.length]).toEqual([field, sessions])
  }
})

test('the timeline lists what happened, oldest first', async () => {
  const { timeline, created_at: created } = await get('?include=timeline')
  expect(
    timeline.map(({ kind, event_id, value }: Record<string, unknown>) => [kind, event_id, value]),
  ).toEqual([
    ['opened', null, null],
    ['data_received', null, null],
    ['decided', id('evt', 100), 'first'],
    ['data_received', null, null],
    ['decided', id('evt', 1), sessionScored().reason],
    ['user_changed', null, 'ann'],
    ['marked', null, 'fraud'],
  ])
  const times = timeline.map(({ at }: { at: string }) => at)
  expect(times).toEqual(times.toSorted())
  expect(times[0]).toBe(created)
})

test('both are absent unless requested', async () => {
  const detail = await get('')
  expect(detail).not.toHaveProperty('related')
  expect(detail).not.toHaveProperty('timeline')
})

test('the documents of a state with lone surrogates, which clients can send, are in the timeline', async () => {
  const state = {
    documents: [
      { opened_at: now.ms, url: 'https://shop.example/' },
      { opened_at: now.ms, url: '' },
    ],
    vendor: '\ud800',
  }
  await readback.core.pool.query(
    `insert into scoring.sessions (session_id, organization_id, environment, opened_at, last_activity_at, due_at, state)
     values ($1, $2, 'live', 0, 0, 0, $3)`,
    [id('sid', 1), 'org', JSON.stringify(state)],
  )
  const { timeline } = await get('?include=timeline')
  const opened = timeline.filter(({ kind }: { kind: string }) => kind === 'document_opened')
  expect(opened).toMatchObject([{ value: 'https://shop.example/' }])
})
