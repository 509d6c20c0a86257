import { expect, test } from 'vitest'
import { interleave } from '../../bench/rounds.ts'
import { pairedRatio, quantile, spreadOf } from '../../bench/stats.ts'

test('a spread is the median, the ends and the noise, which one wild round does not move', () => {
  expect(spreadOf([30, 10, 20])).toEqual({ median: 20, min: 10, max: 30, noise: 0.25 })
  expect(spreadOf([4, 1, 3, 2]).median).toBe(2.5)
  expect(spreadOf([5])).toEqual({ median: 5, min: 5, max: 5, noise: 0 })
  expect(spreadOf([10, 10, 10, 10, 1000]).median).toBe(10)
  expect(() => spreadOf([])).toThrow('no values')
})

test('quantiles interpolate between neighbours', () => {
  expect(quantile([0, 10], 0.25)).toBe(2.5)
  expect([0, 1].map((share) => quantile([1, 2, 3, 4, 5], share))).toEqual([1, 5])
})

test('ratios compare within a round, so that a slow round does not change them', () => {
  const half = { median: 0.5, min: 0.5, max: 0.5 }
  expect(pairedRatio([10, 100, 10], [20, 200, 20])).toMatchObject(half)
  expect(() => pairedRatio([1, 2], [1])).toThrow('do not match')
})

test('rounds warm each variant up, then take turns in alternating order', async () => {
  const order: string[] = []
  const variant = (name: string) => ({ name, run: async () => order.push(name) })
  const samples = await interleave({ rounds: 3, warmUps: 1 }, [variant('a'), variant('b')])
  expect(order.join('')).toBe('ab' + 'ab' + 'ba' + 'ab')
  expect(samples).toEqual({ a: [3, 6, 7], b: [4, 5, 8] })
})
