import { expect, test } from 'vitest'
import type { SessionScored } from '../../../schemas/events.ts'
import { expectRefused, id, numbersIn, useReadback } from './support.ts'

const readback = await useReadback()
const list = (query: string) => readback.send({ url: `/v1/sessions?${query}` })

const start = 1_760_000_000_000
const scored = (number: number, changes: Partial<SessionScored>) => ({
  session_id: id('sid', number),
  event_id: id('evt', number),
  evaluated_at: start + number,
  ...changes,
})
const fired = (signal: string, signal_score: number) => ({
  signal,
  role: 'risk',
  category: 'environment',
  strength: 'moderate',
  channel: 'window',
  signal_score,
})
const page = 'since=2025-10-01T00:00:00Z'

await readback.score(...[50, 90, 50, 50, 10].map((risk_score, i) => scored(i + 1, { risk_score })))

test.each([
  ['', [5, 4, 3, 2, 1]],
  ['order=asc', [1, 2, 3, 4, 5]],
  ['sort=evaluated_at&order=desc', [5, 4, 3, 2, 1]],
  ['sort=risk_score', [2, 4, 3, 1, 5]],
  ['sort=risk_score&order=asc', [5, 1, 3, 4, 2]],
  ['sort=risk_score&score_max=50', [4, 3, 1, 5]],
  ['order=asc&search=signup', [1, 2, 3, 4, 5]],
  ['order=asc&handed_off=false', [1, 2, 3, 4, 5]],
])('a list with %s has this order, also across pages of one', async (query, expected) => {
  const whole = await list(`${page}&${query}`)
  expect(numbersIn(whole)).toEqual(expected)
  const seen: number[] = []
  for (let cursor = ''; seen.length < 10; ) {
    const response = await list(`${page}&${query}&limit=1&cursor=${cursor}`)
    seen.push(...numbersIn(response))
    cursor = response.body.pagination.next_cursor
    if (!cursor) break
  }
  expect(seen).toEqual(expected)
})

test('a cursor is bound to its order', async () => {
  const first = await list(`${page}&sort=risk_score&limit=1`)
  const { next_cursor } = first.body.pagination
  for (const query of ['sort=risk_score&order=asc', 'sort=evaluated_at', 'order=asc', ''])
    expectRefused(await list(`${page}&${query}&limit=1&cursor=${next_cursor}`), 'cursor=')
})

test('an unknown order, and a search sorted by score, are refused with what is possible', async () => {
  expectRefused(await list('sort=country'), 'sort=')
  expectRefused(await list('order=up'), 'order=')
  const { body } = await list('sort=risk_score&search=x')
  expect(body.error.message).toEqual(
    expect.stringContaining('search results are sorted by time only'),
  )
})

test('the top signal has the most points among those for the verdict', async () => {
  const signals_fired = [
    fired('natural_typing', 6),
    fired('natural_pointer_movement', 8),
    fired('fresh_proofs', 2),
    fired('developer_tools_detected', 38),
    fired('webdriver_detected', 100),
    fired('privacy_hardening_indicators', 0),
  ]
  await readback.score(
    scored(11, { verdict: 'human', signals_fired }),
    scored(12, { verdict: 'bot', signals_fired }),
    scored(13, { verdict: 'inconclusive', signals_fired: signals_fired.slice(0, 4) }),
    scored(14, { verdict: 'bot', signals_fired: signals_fired.slice(0, 3) }),
  )
  const { body } = await list('limit=4')
  const top = body.data.map((row: { facts: { top_signal: string } }) => row.facts.top_signal)
  expect(top).toEqual([
    null,
    'developer_tools_detected',
    'webdriver_detected',
    'natural_pointer_movement',
  ])
})
