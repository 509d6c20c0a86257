import { expect, test } from 'vitest'
import { createRandom } from '../../infra/random.ts'

test('returns the requested number of bytes, also across and beyond blocks', () => {
  const random = createRandom()
  for (const size of [0, 1, 12, 16, 32, 4096, 4097, 20_000]) expect(random(size)).toHaveLength(size)
})

test('never returns the same bytes twice', () => {
  const random = createRandom()
  const seen = new Set(Array.from({ length: 5000 }, () => random(16).toString('hex')))
  expect(seen.size).toBe(5000)
})

test('overwriting returned bytes does not affect later ones', () => {
  const random = createRandom()
  for (let round = 0; round < 2000; round++) random(16).fill(0)
  expect(random(16).equals(Buffer.alloc(16))).toBe(false)
})
