import { expect, it } from 'vitest'
import { shownTable, signalTable } from '../../../bench/detection/signal-table.ts'
import { signalCatalogue } from '../../../services/scoring/signals/catalogue.ts'
import { judgedSignals } from './support/sessions.ts'

it('docs/reference/signals.md matches the signal catalogue', async () => {
  expect(await shownTable()).toBe(await signalTable())
})

it('the catalogue is well-formed', () => {
  const slugs = signalCatalogue.map(({ slug }) => slug)
  expect(new Set(slugs).size).toBe(slugs.length)
  for (const { slug, points, role, strength } of judgedSignals) {
    expect(slug).toMatch(/^[a-z][a-z0-9_]+$/)
    if (role === 'context') expect(points).toBe(0)
    // A definitive signal decides alone, so it must reach the verdict `bot`; no other signal may.
    if (role === 'risk') expect([slug, points >= 70]).toEqual([slug, strength === 'definitive'])
  }
})
