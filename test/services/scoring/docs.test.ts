import { expect, it } from 'vitest'
import { shownTable, signalTable } from '../../../bench/detection/signal-table.ts'
import { signalCatalogue } from '../../../services/scoring/signals/catalogue.ts'
import { categories } from '../../../services/scoring/signals/signal.ts'

it('docs/reference/signals.md lists every signal as the catalogue has it', async () => {
  expect(await shownTable()).toBe(await signalTable())
})

it('the catalogue is well-formed', () => {
  const slugs = signalCatalogue.map(({ slug }) => slug)
  expect(new Set(slugs).size).toBe(slugs.length)
  for (const { slug, score, role, category, strength } of signalCatalogue) {
    expect(slug).toMatch(/^[a-z][a-z0-9_]+$/)
    expect(categories).toContain(category)
    expect(Number.isInteger(score) && score >= 0 && score <= 100).toBe(true)
    if (role === 'context') expect(score).toBe(0)
    // A definitive signal decides alone, so that it must reach the band of a bot; no other may.
    if (role === 'risk') expect([slug, score >= 70]).toEqual([slug, strength === 'definitive'])
  }
})
