import { describe, expect, test } from 'vitest'
import { interleave } from '../../bench/rounds.ts'
import { pairedRatio, quantile, spreadOf } from '../../bench/stats.ts'

describe('spreadOf', () => {
  test('gives the median, the ends and the noise', () => {
    expect(spreadOf([30, 10, 20])).toEqual({ median: 20, min: 10, max: 30, noise: 0.25 })
    expect(spreadOf([4, 1, 3, 2]).median).toBe(2.5)
    expect(spreadOf([5])).toEqual({ median: 5, min: 5, max: 5, noise: 0 })
  })

  test('is not moved by one wild round', () => {
    expect(spreadOf([10, 10, 10, 10, 1000]).median).toBe(10)
  })

  test('refuses to summarise nothing', () => {
    expect(() => spreadOf([])).toThrow('no values')
  })
})

describe('quantile', () => {
  test('interpolates between neighbours', () => {
    expect(quantile([0, 10], 0.25)).toBe(2.5)
    expect(quantile([1, 2, 3, 4, 5], 1)).toBe(5)
    expect(quantile([1, 2, 3, 4, 5], 0)).toBe(1)
  })
})

describe('pairedRatio', () => {
  test('compares within a round, so that a slow round does not change the ratio', () => {
    expect(pairedRatio([10, 100, 10], [20, 200, 20])).toMatchObject({
      median: 0.5,
      min: 0.5,
      max: 0.5,
    })
  })

  test('refuses rounds that do not match', () => {
    expect(() => pairedRatio([1, 2], [1])).toThrow('do not match')
  })
})

describe('interleave', () => {
  test('warms each variant up, then takes turns in alternating order', async () => {
    const order: string[] = []
    const variant = (name: string) => ({ name, run: async () => order.push(name) })
    const samples = await interleave({ rounds: 3, warmUps: 1 }, [variant('a'), variant('b')])
    expect(order.join('')).toBe('ab' + 'ab' + 'ba' + 'ab')
    expect(samples).toEqual({ a: [3, 6, 7], b: [4, 5, 8] })
  })
})
