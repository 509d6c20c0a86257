import { expect, test } from 'vitest'
import { signalCode, signalCodes } from '../../projections/sessions/signal-codes.ts'
import { signalCatalogue } from '../../services/scoring/signals/catalogue.ts'

test('signal codes are unique and do not match across other codes', () => {
  const slugs = signalCatalogue.map(({ slug }) => slug)
  expect(new Set(slugs.map(signalCode)).size).toBe(slugs.length)
  for (const slug of slugs) expect(signalCode(slug)).toMatch(/^[A-Z][0-9a-z]{4}$/)
  const others = signalCodes(slugs.slice(1))
  expect(others).not.toContain(signalCode(slugs[0] ?? ''))
})
