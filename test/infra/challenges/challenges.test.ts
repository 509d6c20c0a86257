import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it, test } from 'vitest'
import {
  canvasChallengeOf,
  canvasSeedOf,
  engineVersionOf,
  questionsOf,
  recordedAnswer,
} from '../../../infra/challenges/challenges.ts'
import { questionBank } from '../../../infra/challenges/questions.ts'
import { answerMac } from '../../../infra/wire/collect/client-crypto.ts'
import { isValidAnswerMac } from '../../../services/scoring/session/answers.ts'

const bank = [...questionBank.language, ...questionBank.platform, ...questionBank.version]
const weekMs = 7 * 24 * 60 * 60 * 1000

it('there are at least 150 questions, which never change', () => {
  expect(bank.length).toBeGreaterThanOrEqual(150)
  expect(new Set(bank.map(({ id }) => id)).size).toBe(bank.length)
  const first = (list: readonly object[], count: number) => JSON.stringify(list.slice(0, count))
  const text =
    first(questionBank.language, 59) +
    first(questionBank.platform, 90) +
    first(questionBank.version, 76)
  expect(createHash('sha256').update(text).digest('hex').slice(0, 16)).toBe('ae04595e93b64e7d')
})

it('questions of a document are derived from its challenge and include every kind', () => {
  fc.assert(
    fc.property(fc.string(), (challenge) => {
      const asked = questionsOf(challenge)
      expect(asked).toEqual(questionsOf(challenge))
      expect(new Set(asked.map(({ id }) => id)).size).toBe(12)
      const kinds = asked.map(({ id }) =>
        id < 1000 ? 'language' : id < 2000 ? 'platform' : 'version',
      )
      expect(kinds.filter((kind) => kind === 'platform')).toHaveLength(5)
    }),
  )
})

it('there are 64 drawings, of which one is replaced each week', () => {
  const at = (now: number) =>
    new Set(Array.from({ length: 4000 }, (_, i) => canvasSeedOf(`challenge ${i}`, now)))
  const now = 3000 * weekMs
  expect(at(now).size).toBe(64)
  const newSeeds = (weeks: number) =>
    [...at(now + weeks * weekMs)].filter((seed) => !at(now).has(seed))
  expect(newSeeds(1)).toHaveLength(1)
  expect(newSeeds(64)).toHaveLength(64)
})

it('a seed always yields the same drawing', () => {
  const drawing = canvasChallengeOf('3.46')
  expect(drawing).toEqual(canvasChallengeOf('3.46'))
  expect(JSON.stringify(drawing)).not.toBe(JSON.stringify(canvasChallengeOf('4.46')))
  expect(drawing).toMatchObject({ width: 120, height: 40 })
})

const windows = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)'
const phone = 'Mozilla/5.0 (Linux; Android 15; wv) AppleWebKit/537.36 (KHTML, like Gecko)'
const mac = 'Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko)'
const iphone = 'Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) AppleWebKit/605.1.15'
const linux = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/605.1.15 (KHTML, like Gecko)'

test.each([
  [`${windows} Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0`, 'blink', 140],
  [`${windows} Chrome/130.0.0.0 Safari/537.36 OPR/115.0.0.0`, 'blink', 130],
  [`${phone} Version/4.0 Chrome/139.0.0.0 Mobile Safari/537.36`, 'blink', 139],
  [`${mac} Version/18.5 Safari/605.1.15`, 'webkit', 18],
  [`${iphone} CriOS/140.0.0.0 Mobile/15E148 Safari/604.1`, 'webkit', 17],
  [mac, 'webkit', 0],
  [`${linux} Version/60.5 Safari/605.1.15`, 'webkitgtk', 60],
  [`${linux} ShopApp/4.2`, 'webkitgtk', 0],
  ['Mozilla/5.0 (Android 14; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0', 'gecko', 140],
])('engineVersionOf %s', (userAgent, family, major) => {
  expect(engineVersionOf(userAgent)).toEqual({ family, major })
})

test('engineVersionOf returns null for other texts', () => {
  for (const text of ['', 'curl/8', 'Mozilla/5.0', 'Chrome/x'])
    expect(engineVersionOf(text)).toBeNull()
})

test('a version between two recorded ones gets the answer on which both agree', () => {
  const between = bank.map(({ id }) => {
    const [old, now, middle] = [87, 156, 120].map((major) =>
      recordedAnswer({ family: 'blink', major }, id),
    )
    return middle === undefined ? old !== now : middle === old && middle === now
  })
  expect(between.every(Boolean)).toBe(true)
})

test('versions beyond the recorded ones get no answers that change between versions', () => {
  for (const { id } of questionBank.version)
    expect(recordedAnswer({ family: 'gecko', major: 78 }, id)).toBeUndefined()
  for (const { id } of questionBank.language)
    expect(recordedAnswer({ family: 'webkitgtk', major: 18 }, id)).toBeTypeOf('string')
})

test('Safari has no recorded answers', () => {
  for (const { id } of bank)
    expect(recordedAnswer({ family: 'webkit', major: 26 }, id)).toBeUndefined()
})

test('the MAC of answers is valid only for its document', () => {
  const key = { challenge: 'c', timingNonce: 't' }
  const answers = { canvas: 'abc', engine: [{ id: 1, answer: 'x' }] }
  const mac = answerMac(key, answers)
  expect(mac).toMatch(/^[\w-]{43}$/)
  expect(isValidAnswerMac(key, answers, mac)).toBe(true)
  expect(isValidAnswerMac({ ...key, challenge: 'd' }, answers, mac)).toBe(false)
  expect(isValidAnswerMac({ ...key, timingNonce: 'd' }, answers, mac)).toBe(false)
  expect(isValidAnswerMac(key, { ...answers, canvas: null }, mac)).toBe(false)
  expect(isValidAnswerMac(key, { ...answers, engine: [{ id: 2, answer: 'x' }] }, mac)).toBe(false)
  expect(isValidAnswerMac(key, answers, `${mac}=`)).toBe(false)
})
