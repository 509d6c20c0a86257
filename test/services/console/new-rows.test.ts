import { expect, test } from 'vitest'
import { mergeNewest } from '../../../services/console/pages/sessions/new-rows.ts'
import { sessionSummary } from './session-summary.ts'

const row = (id: string, evaluated_at: string, label?: 'bot') =>
  sessionSummary({
    id,
    latest_decision: { evaluated_at },
    mark: label ? { id: 'mrk_1', label, reason: null, marked_at: evaluated_at } : null,
  })

test('rows that come are announced, and those that are there stay where they are', () => {
  const before = [row('b', '2'), row('a', '1')]
  const { rows, newCount } = mergeNewest(before, [row('c', '3'), ...before])
  expect(rows).toEqual(before)
  expect(newCount).toBe(1)
})

test('rows that come are announced when they are there with another decision', () => {
  const before = [row('b', '2'), row('a', '1')]
  expect(mergeNewest(before, [row('a', '3'), row('b', '2')])).toEqual({ rows: before, newCount: 1 })
})

test('rows that come show a new mark at once', () => {
  const marked = row('a', '1', 'bot')
  expect(mergeNewest([row('b', '2'), row('a', '1')], [row('b', '2'), marked])).toEqual({
    rows: [row('b', '2'), marked],
    newCount: 0,
  })
})
