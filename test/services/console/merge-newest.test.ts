import { expect, test } from 'vitest'
import { mergeNewest } from '../../../services/console/pages/sessions/merge-newest.ts'
import { sessionSummary } from './session-summary.ts'

const row = (id: string, evaluated_at: string, label?: 'bot') =>
  sessionSummary({
    id,
    latest_decision: { evaluated_at },
    mark: label ? { id: 'mrk_1', label, reason: null, marked_at: evaluated_at } : null,
  })

test('new rows are counted, and rows on screen stay in place', () => {
  const before = [row('b', '2'), row('a', '1')]
  const { rows, newCount } = mergeNewest(before, [row('c', '3'), ...before])
  expect(rows).toEqual(before)
  expect(newCount).toBe(1)
})

test('a row on screen that has a new decision is counted as new', () => {
  const before = [row('b', '2'), row('a', '1')]
  expect(mergeNewest(before, [row('a', '3'), row('b', '2')])).toEqual({ rows: before, newCount: 1 })
})

test('a new label of a row on screen is shown at once', () => {
  const marked = row('a', '1', 'bot')
  expect(mergeNewest([row('b', '2'), row('a', '1')], [row('b', '2'), marked])).toEqual({
    rows: [row('b', '2'), marked],
    newCount: 0,
  })
})
