import { expect, it } from 'vitest'
import { isAssignedCountryCode, isObservedCountryCode } from '../../../services/agents/decide.ts'

const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
const pairs = letters.flatMap((first) => letters.map((second) => first + second))

it('ISO 3166-1 assigns 249 codes', () => {
  expect(pairs.filter(isAssignedCountryCode)).toHaveLength(249)
  expect(['DE', 'GB', 'US', 'SS'].every(isAssignedCountryCode)).toBe(true)
  expect(['XX', 'XK', 'UK', 'EU', 'AN', 'ZZ', 'de', 'DEU', ''].some(isAssignedCountryCode)).toBe(false)
})

it('databases also say XK', () => {
  expect(pairs.filter(isObservedCountryCode)).toHaveLength(250)
  expect(isObservedCountryCode('XK')).toBe(true)
  expect(isObservedCountryCode('XX')).toBe(false)
})
