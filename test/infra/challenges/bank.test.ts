import { hash, randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import {
  bankIdOf,
  bankNumberAt,
  bankNumberOf,
  bankNumbersOf,
  bankPartOf,
  bankQuestion,
  bankSize,
  challengeWithPart,
  frequentNumbersAt,
} from '../../../infra/challenges/bank.ts'
import { questionBank } from '../../../infra/challenges/questions.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'

const keyring = () => createKeyring(randomBytes(32).toString('base64')).current
const [master, other] = [keyring(), keyring()]
const now = Date.UTC(2026, 10, 24)
const week = 7 * 24 * 60 * 60 * 1000
const slots = Array.from({ length: bankSize }, (_, slot) => slot)
const numbersAt = (at: number) => slots.map((slot) => bankNumberAt(slot, at))
const challengeOf = (i: number) => hash('sha256', `challenge ${i}`, 'base64url').slice(0, 22)
const questionText = (number: number, key = master) => {
  const { id: _id, ...question } = bankQuestion(number, key)
  return JSON.stringify(question)
}

it('bank questions differ between master keys', () => {
  const own = numbersAt(now).map((number) => questionText(number))
  expect(new Set(own).size).toBeGreaterThan(bankSize * 0.98)
  const others = new Set(numbersAt(now).map((number) => questionText(number, other)))
  expect(own.filter((question) => others.has(question)).length).toBeLessThan(bankSize * 0.02)
  expect(numbersAt(now).map((number) => questionText(number))).toEqual(own)
})

it('bank questions have unique ids for each key and number', () => {
  const ids = [master, other].flatMap((key) =>
    numbersAt(now).map((number) => bankIdOf(number, key)),
  )
  expect(new Set(ids).size).toBe(2 * bankSize)
  expect(ids.every((id) => Number.isSafeInteger(id))).toBe(true)
  expect(ids.map(bankNumberOf)).toEqual([...numbersAt(now), ...numbersAt(now)])
  for (const { id } of Object.values(questionBank).flat()) expect(bankNumberOf(id)).toBeUndefined()
})

it('bank questions are replaced week by week, and all of them within a year', () => {
  const kept = (weeks: number) => {
    const later = new Set(numbersAt(now + weeks * week))
    return numbersAt(now).filter((number) => later.has(number)).length / bankSize
  }
  expect(kept(1)).toBeGreaterThan(0.97)
  expect(kept(1)).toBeLessThan(1)
  expect(kept(10)).toBeGreaterThan(0.8)
  expect(kept(52)).toBe(0)
})

it('a document gets twelve bank questions: six frequent, two upcoming and four others', () => {
  const count = new Map<number, number>()
  const documents = 8000
  for (let i = 0; i < documents; i++) {
    const asked = bankNumbersOf(challengeOf(i), now)
    expect(new Set(asked).size).toBe(12)
    for (const number of asked) count.set(number, (count.get(number) ?? 0) + 1)
  }
  const frequent = frequentNumbersAt(now)
  const upcoming = frequentNumbersAt(now + 4 * week).filter((number) => !frequent.includes(number))
  expect(upcoming).toHaveLength(4)
  expect(new Set(count.keys())).toEqual(new Set([...numbersAt(now), ...upcoming]))
  const shares = (of: number[], each: number) =>
    of.map((number) => ((count.get(number) ?? 0) / documents / each) * of.length)
  for (const [of, each] of [
    [frequent, 6],
    [upcoming, 2],
  ] as const) {
    expect(Math.min(...shares(of, each))).toBeGreaterThan(0.8)
    expect(Math.max(...shares(of, each))).toBeLessThan(1.2)
  }
  const others = numbersAt(now).filter((number) => !frequent.includes(number))
  expect(Math.max(...shares(others, 4))).toBeLessThan(3)
})

it('a source gets few bank questions a day, and different ones from other sources and days', () => {
  const askedOf = (source: string, at: number) => {
    const part = bankPartOf(source, { now: at, master })
    const documents = Array.from({ length: 500 }, () => challengeWithPart(randomBytes(16), part))
    return new Set(documents.flatMap((challenge) => bankNumbersOf(challenge, now)))
  }
  const day = 24 * 60 * 60 * 1000
  const today = askedOf('192.0.2.1', now)
  expect(today.size).toBe(6 + 2 + 32)
  expect(askedOf('192.0.2.1', now + day - 1)).toEqual(today)
  for (const others of [askedOf('192.0.2.2', now), askedOf('192.0.2.1', now + day)])
    expect([...others].filter((number) => today.has(number)).length).toBeLessThan(12)
})

it('bank questions are of several kinds, all of which need a page', () => {
  const kinds = Map.groupBy(numbersAt(now), (number) => bankQuestion(number, master).ask)
  expect([...kinds.keys()].sort()).toEqual(['computed', 'inside', 'lines', 'path', 'style'])
  for (const list of kinds.values()) expect(list.length).toBeGreaterThan(bankSize / 10)
})
