import { expect, test } from 'vitest'
import { createBudget } from '../../../infra/access/budget.ts'

test('does not lock a source out when the clock is set back', () => {
  let now = 1_800_000_000_000
  const budget = createBudget({ clock: () => now })
  for (let i = 0; i < 50; i++) budget.spend('192.0.2.1')
  expect(budget.spend('192.0.2.1')).toBe(false)
  now -= 3_600_000
  expect(budget.spend('192.0.2.1')).toBe(true)
})

test('tracks a limited number of sources', () => {
  const budget = createBudget({ clock: () => 0, burst: 1, maxKeys: 2 })
  for (const source of ['192.0.2.1', '192.0.2.2', '192.0.2.3'])
    expect(budget.spend(source)).toBe(true)
  expect(budget.spend('192.0.2.3')).toBe(false)
  expect(budget.spend('192.0.2.1')).toBe(true)
})
