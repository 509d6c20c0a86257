import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createBudget } from '../../../infra/access/budget.ts'

describe('the budget', () => {
  test('is a token bucket for each source', () => {
    const step = fc.record({
      source: fc.constantFrom('192.0.2.1', '192.0.2.2'),
      waitMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 700 })),
      times: fc.integer({ min: 1, max: 12 }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let now = 1_800_000_000_000
        const budget = createBudget({ clock: () => now, perSecond: 4, burst: 8 })
        const levels = new Map<string, { level: number; at: number }>()
        for (const { source, waitMs, times } of steps) {
          now += waitMs
          for (let i = 0; i < times; i++) {
            // In thousandths of a look-up, so that all sums are exact.
            const last = levels.get(source) ?? { level: 8000, at: now }
            const level = Math.min(8000, last.level + (now - last.at) * 4)
            const allowed = level >= 1000
            levels.set(source, { level: allowed ? level - 1000 : level, at: now })
            expect(budget.spend(source)).toBe(allowed)
          }
        }
      }),
    )
  })

  test('does not lock a source out when the clock is set back', () => {
    let now = 1_800_000_000_000
    const budget = createBudget({ clock: () => now })
    for (let i = 0; i < 50; i++) budget.spend('192.0.2.1')
    expect(budget.spend('192.0.2.1')).toBe(false)
    now -= 3_600_000
    expect(budget.spend('192.0.2.1')).toBe(true)
  })

  test('remembers a bounded number of sources', () => {
    const budget = createBudget({ clock: () => 0, burst: 1, maxKeys: 2 })
    for (const source of ['192.0.2.1', '192.0.2.2', '192.0.2.3'])
      expect(budget.spend(source)).toBe(true)
    expect(budget.spend('192.0.2.3')).toBe(false)
    expect(budget.spend('192.0.2.1')).toBe(true)
  })
})
