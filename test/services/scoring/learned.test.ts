import { describe, expect, it } from 'vitest'
import { answerDigest, classDigest } from '../../../projections/answers/digests.ts'
import { distinct } from '../../../projections/answers/projection.ts'
import type { GivenAnswer } from '../../../projections/answers/queries.ts'
import { learnFrom } from '../../../services/scoring/learned.ts'

const of = { environment: 'live', class: 'blink 156', asked: '7' } as const
const hashes = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) =>
    (BigInt(from + i + 1) * 0x0004_1041_0410_4104n).toString(16).padStart(16, '0').slice(-16),
  ).sort()
const given = (answer: string, visitors: number, networks: number, from = 0): GivenAnswer => ({
  ...{ ...of, class: classDigest(of.class), answer: answerDigest(answer) },
  visitors: hashes(visitors, from).slice(0, 64),
  networks: hashes(networks, from).slice(0, 64),
})

const known = (learned: ReturnType<ReturnType<typeof learnFrom>>) =>
  ['a', 'b', 'poison'].filter((answer) => learned?.has(answer))

describe('answers that were learned', () => {
  it('count from twenty visitors of ten networks on', () => {
    expect(learnFrom([given('a', 19, 19)])(of)).toBeUndefined()
    expect(learnFrom([given('a', 40, 9)])(of)).toBeUndefined()
    expect(known(learnFrom([given('a', 20, 10)])(of))).toEqual(['a'])
    expect(learnFrom([given('a', 20, 10)])({ ...of, environment: 'test' })).toBeUndefined()
  })

  it('may be several, and are not known where they scatter', () => {
    expect(known(learnFrom([given('a', 30, 20), given('b', 25, 12, 100)])(of))).toEqual(['a', 'b'])
    const scattered = Array.from({ length: 5 }, (_, i) => given(`other ${i}`, 1, 1, 200 + i))
    expect(learnFrom([given('a', 40, 20), ...scattered])(of)).toBeUndefined()
  })

  it('are not made by a few who repeat themselves', () => {
    const poison = given('poison', 15, 2, 500)
    expect(known(learnFrom([given('a', 60, 30), poison])(of))).not.toContain('poison')
  })
})

it('counts exactly below 64, and by the hashes that were kept beyond that', () => {
  expect(distinct(hashes(63))).toBe(63)
  const many = Array.from({ length: 10_000 }, () =>
    Math.floor(Math.random() * 2 ** 48)
      .toString(16)
      .padStart(12, '0')
      .padEnd(16, '0'),
  )
  const estimate = distinct(many.sort().slice(0, 64))
  expect(estimate).toBeGreaterThan(5000)
  expect(estimate).toBeLessThan(20_000)
})
