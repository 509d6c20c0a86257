import { expect, test } from 'vitest'
import { visitorLink } from '../../support/session-scored.ts'
import { id, useReadback } from './support.ts'

const signals = Array.from({ length: 50 }, (_, i) => `signal=none_${i}`).join('&')
const sessionIds = (count: number) => Array.from({ length: count }, (_, n) => id('sid', n))

const readback = await useReadback()
const sessions = sessionIds(201).map((session_id, n) => ({
  session_id,
  event_id: id('evt', n),
  evaluated_at: 1000 + n,
  visitor: visitorLink({ id: id('vid', n < 150 ? 1 : 2) }),
}))
await readback.score(...sessions)

const costOf = async (url: string, body?: object) => {
  const { status, headers } = await readback.send({
    url,
    ...(body && { method: 'POST' as const, body }),
  })
  return [status, Number(headers['x-ratelimit-cost'])]
}

test.each([
  ['', 1],
  ['since=2025-01-01T00:00:00Z&verdict=bot', 1],
  [`visitor_id=${id('vid', 1)}`, 1],
  [`visitor_id=${id('vid', 1)}&country=DE`, 1],
  ['country=DE', 2],
  ['verdict[not]=bot', 1],
  ['country[not]=DE', 2],
  ['signal=none_1&signal=none_2', 2],
  ['signal=none_1&signal=none_2&signal=none_3', 3],
  [signals, 22],
  [signals.replaceAll('signal=', 'signal[not]='), 22],
  ['search=a1', 5],
])('a list with %j costs %i', async (query, units) => {
  expect(await costOf(`/v1/sessions?${query}`)).toEqual([200, units])
})

// Reading 201 sessions without a roll-up costs less than one unit.
test.each([
  ['since=2025-01-01T00:00:00Z&until=2025-01-01T00:00:00Z', 5],
  ['since=1970-01-01T00:00:00Z', 6],
  ['since=1970-01-01T00:00:00Z&group_by=signal', 6],
  ['since=1970-01-01T00:00:00Z&group_by=signal,country', 6],
  [`since=1970-01-01T00:00:00Z&group_by=signal,country&${signals}`, 10],
])('a count with %j costs %i', async (query, units) => {
  expect(await costOf(`/v1/sessions/aggregates?${query}`)).toEqual([200, units])
})

test.each<[string, object, number]>([
  ['a session', { session_ids: sessionIds(1) }, 1],
  ['100 sessions', { session_ids: sessionIds(100) }, 1],
  ['101 sessions', { session_ids: sessionIds(101) }, 2],
  ['201 sessions', { session_ids: sessionIds(201) }, 3],
  ['a visitor of 150 sessions', { visitor_id: id('vid', 1) }, 2],
])('marking %s costs the same again when repeated', async (_, target, units) => {
  for (let i = 0; i < 2; i++)
    expect(await costOf('/v1/marks', { label: 'bot', ...target })).toEqual([201, units])
})

test('marking sessions costs the same if one of them is unknown', async () => {
  const target = { label: 'bot', session_ids: [...sessionIds(100), id('sid', 999)] }
  expect(await costOf('/v1/marks', target)).toEqual([422, 2])
})

test('removing a mark of 201 sessions costs three', async () => {
  const { body } = await readback.send({
    url: '/v1/marks',
    method: 'POST',
    body: { label: 'fraud', session_ids: sessionIds(201) },
  })
  const { status, headers } = await readback.send({
    url: `/v1/marks/${body.data.id}`,
    method: 'DELETE',
  })
  expect([status, headers['x-ratelimit-cost']]).toEqual([200, '3'])
})
