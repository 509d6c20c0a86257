import { hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import {
  bankIdOf,
  bankNumberAt,
  bankNumbersBetween,
  bankNumbersOf,
  frequentSize,
} from '../../../infra/challenges/bank.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { answerDigest, classDigest } from '../../../projections/answers/digests.ts'
import { createLearnedAnswers, type LearnedAnswers } from '../../../projections/answers/learned.ts'
import {
  answerRows,
  estimateVisitors,
  mergeAnswers,
} from '../../../projections/answers/projection.ts'
import type { ClassAnswer } from '../../../projections/answers/queries.ts'
import type { SessionScored } from '../../../schemas/events.ts'
import { sessionScored } from '../../support/session-scored.ts'

const [mine, other, third, evil] = ['org_mine', 'org_other', 'org_third', 'org_evil'] as const
type GivenAnswers = NonNullable<SessionScored['given_answers']>

const hourMs = 60 * 60 * 1000
const of = {
  environment: 'live',
  class: 'blink 156',
  question: '7',
  organizationId: mine as string,
} as const
const everywhere = { ...of, organizationId: 'org_new' }

const shortHash = (text: string) => hash('sha256', text).slice(0, 16)
const visitorsFrom = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => shortHash(`visitor ${from + i}`))
const networkOf = (n: number) => shortHash(`network ${n}`)

/** Returns the rows of a session's answers, by default of Blink to question 7. */
const rowsOf = (organization_id: string, evaluated_at: number, overrides: Partial<GivenAnswers>) =>
  answerRows({
    ...sessionScored(),
    organization_id,
    evaluated_at,
    given_answers: {
      engine: classDigest(of.class),
      engine_family: 'blink',
      canvas_class: null,
      canvas_seed: null,
      canvas_answer: null,
      engine_answers: { 7: 'x' },
      is_consistent: true,
      handshake: null,
      visitor_digest: '',
      network_digest: '',
      ...overrides,
    },
  })

interface From {
  /** Organizations, visited in turn. */
  at?: readonly string[]
  /** Number of the first visitor. */
  from?: number
  /** Milliseconds between two visitors. */
  everyMs?: number
}

/** Returns an answer by this many visitors from this many networks, at one organization unless `at` has several. */
function given(
  answer: string,
  [visitors, networks]: [number, number],
  { at = [mine], from = 0, everyMs = 25 * hourMs }: From = {},
): ClassAnswer {
  const rows = visitorsFrom(from, visitors).flatMap((visitor_digest, i) =>
    rowsOf(at[i % at.length] ?? mine, i * everyMs, {
      network_digest: networkOf(from + (i % networks)),
      visitor_digest,
    }),
  )
  const [merged] = [...mergeAnswers(rows).values()]
  const { visitors: digests, organizations } = merged ?? { visitors: [], organizations: {} }
  return {
    environment: 'live',
    question: of.question,
    class: classDigest(of.class),
    answer: answerDigest(answer),
    visitors: digests,
    organizations,
    taught: [],
  }
}

const learn = (
  answers: ClassAnswer[],
  question: Parameters<LearnedAnswers['answersTo']>[0] = of,
) => {
  const right = createLearnedAnswers(answers, { now: 0, keys: [] }).answersTo(question)
  return right && ['a', 'b', 'poison'].filter((answer) => right.has(answer))
}

describe('learned answers', () => {
  it('need twenty visitors from ten networks', () => {
    expect(learn([given('a', [19, 19])])).toBeUndefined()
    expect(learn([given('a', [40, 9])])).toBeUndefined()
    expect(learn([given('a', [20, 10])])).toEqual(['a'])
    expect(learn([given('a', [20, 10])], { ...of, environment: 'test' })).toBeUndefined()
  })

  it('need six different hours, however many visitors there are', () => {
    expect(learn([given('a', [400, 100], { everyMs: 0 })])).toBeUndefined()
    expect(learn([given('a', [400, 100], { everyMs: hourMs / 100 })])).toBeUndefined()
    expect(learn([given('a', [400, 100], { everyMs: hourMs / 60 })])).toEqual(['a'])
  })

  it('count a network at most twice a day, and a visitor once', () => {
    const flood = given('a', [500, 1], { everyMs: hourMs / 50 })
    expect(estimateVisitors(flood.visitors)).toBe(2)
    expect(estimateVisitors(given('a', [10, 1], { everyMs: 24 * hourMs }).visitors)).toBe(10)
    const [visitor = ''] = given('a', [1, 1]).visitors
    const again = visitorsFrom(0, 10).map((slot) => `${slot.slice(0, 8)}${visitor.slice(8)}`)
    expect(estimateVisitors(again)).toBe(1)
  })

  it.each([2, 5])('count visitors who return %i times from several networks', (times) => {
    const rows = Array.from({ length: 60 * times }, (_, i) => {
      const [visitor_digest = ''] = visitorsFrom(i % 60, 1)
      return rowsOf(mine, i * 25 * hourMs, { network_digest: networkOf(i % 97), visitor_digest })
    })
    const [row] = [...mergeAnswers(rows.flat()).values()]
    if (!row) throw new Error('one answer')
    const [counted] = Object.values(row.organizations)
    expect(estimateVisitors(counted?.visitors ?? [])).toBeGreaterThan(20)
    const answer = { ...row, class: classDigest(of.class) }
    expect(createLearnedAnswers([answer], { now: 0, keys: [] }).answersTo(of)).toBeDefined()
  })

  it('may be several, but not if they scatter', () => {
    expect(learn([given('a', [30, 20]), given('b', [25, 12], { from: 100 })])).toEqual(['a', 'b'])
    const scattered = Array.from({ length: 5 }, (_, i) =>
      given(`other ${i}`, [1, 1], { from: 200 + i }),
    )
    expect(learn([given('a', [40, 20]), ...scattered])).toBeUndefined()
  })

  it('are not created by a few repeating visitors', () => {
    const poison = given('poison', [15, 2], { from: 500 })
    expect(learn([given('a', [60, 30]), poison]) ?? []).not.toContain('poison')
  })

  it('from one or two organizations count only there, and from three everywhere', () => {
    const elsewhere = { ...of, organizationId: other }
    expect(learn([given('a', [40, 20])], elsewhere)).toBeUndefined()
    const ofTwo = given('a', [60, 40], { at: [mine, other] })
    expect([learn([ofTwo], elsewhere), learn([ofTwo], everywhere)]).toEqual([['a'], undefined])
    const ofThree = given('a', [60, 40], { at: [mine, other, third] })
    expect(learn([ofThree], everywhere)).toEqual(['a'])
  })

  it.each([10, 100, 1000])(
    'from one organization with %i visitors add nothing elsewhere',
    (count) => {
      const right = given('a', [90, 60], { at: [mine, other, third] })
      const poison = given('poison', [count, count], { at: [evil], from: 5000 })
      expect(learn([right, poison])).toEqual(['a'])
      const own = learn([right, poison], { ...of, organizationId: evil })
      // The organization itself sees a large share of other answers, so it learns both or nothing.
      if (count > 90) expect(own).toEqual(['a', 'poison'])
      if (count === 10) expect(own).toBeUndefined()
    },
  )

  it('from one organization remove nothing elsewhere, however often it repeats them', () => {
    const few = given('a', [60, 40], { at: [mine, other, third] })
    const flood = given('a', [3000, 500], { at: [evil], from: 5000 })
    expect(learn([merged(few, flood)], everywhere)).toEqual(['a'])
  })

  it.each([
    ['20 equal organizations', Array.from({ length: 20 }, (_, i) => `org_${i}`)],
    [
      'an organization with 70 % of the visitors',
      [...Array.from({ length: 7 }, () => mine), other, third, evil],
    ],
  ])('from %s count everywhere', (_, at) => {
    expect(learn([given('a', [2000, 300], { at })], everywhere)).toEqual(['a'])
  })

  it('from one network count as one, however many organizations it visits', () => {
    const at = Array.from({ length: 30 }, (_, i) => `org_${i}`)
    expect(learn([given('a', [2000, 1], { at })], everywhere)).toBeUndefined()
  })

  it('taught by an operator count immediately and everywhere', () => {
    const answer = { ...given('a', [0, 0]), taught: ['*'] }
    expect(learn([answer], everywhere)).toEqual(['a'])
    expect(learn([answer, given('b', [30, 20], { from: 100 })])).toEqual(['a', 'b'])
  })

  it('are dropped for those taught by an operator, unless most visitors give them', () => {
    const taught = { ...given('a', [60, 30]), taught: ['*'] }
    expect(learn([taught, given('poison', [40, 20], { from: 100 })])).toEqual(['a'])
    expect(learn([taught, given('b', [90, 20], { from: 100 })])).toEqual(['a', 'b'])
  })
})

function merged(one: ClassAnswer, other: ClassAnswer): ClassAnswer {
  const [row] = [...mergeAnswers([one, other].map((given) => ({ id: 'x', ...given }))).values()]
  if (!row) throw new Error('two rows')
  return row
}

describe('bank questions', () => {
  const master = createKeyring(Buffer.alloc(32, 7).toString('base64')).current
  const now = Date.UTC(2026, 10, 24)
  const bank = { now, keys: [master] }
  const weekMs = 7 * 24 * hourMs
  const engine = { environment: 'live', organizationId: mine, class: 'gecko' } as const
  /** Returns the answer as one to a bank question. */
  const toBank = (number: number, answer: ClassAnswer): ClassAnswer => ({
    ...answer,
    class: classDigest('gecko'),
    question: String(bankIdOf(number, master)),
  })
  const toFirst = (places: number, answer = given('a', [20, 10])) =>
    Array.from({ length: places }, (_, place) => toBank(bankNumberAt(place, now), answer))

  it('prove an engine once all but one of the frequent ones are learned, until the frequent ones change', () => {
    const isLearned = (
      places: number,
      over: Partial<Parameters<typeof createLearnedAnswers>[1]> = {},
      of = {},
    ) =>
      createLearnedAnswers(toFirst(places), { ...bank, ...over }).progress({ ...engine, ...of })
        .isLearned
    expect(isLearned(frequentSize - 2)).toBe(false)
    expect(isLearned(frequentSize - 1)).toBe(true)
    expect(isLearned(frequentSize, {}, { class: 'blink' })).toBe(false)
    expect(isLearned(frequentSize, {}, { organizationId: other })).toBe(false)
    expect(isLearned(frequentSize, { now: now + 2 * weekMs })).toBe(false)
    const newer = createKeyring(Buffer.alloc(32, 8).toString('base64')).current
    expect(isLearned(frequentSize, { keys: [newer, master] })).toBe(false)
  })

  it('report how many visitors an engine needs', () => {
    const learned = (visitors: number) =>
      createLearnedAnswers(toFirst(frequentSize, given('a', [visitors, 10])), bank)
    const few = { isLearned: false, visitors: 3, needed: 20 }
    expect(learned(3).progress(engine)).toEqual(few)
    expect(learned(20).progress(engine)).toEqual({ isLearned: true, visitors: 20, needed: 20 })
    const gecko = { environment: 'live', engine: 'gecko', disputed: 0 }
    expect(learned(3).overview()).toContainEqual({ ...gecko, ...few })
  })

  it('are disputed if groups of networks answer differently', () => {
    const others = toFirst(4, given('b', [20, 10], { from: 100 }))
    const gecko = createLearnedAnswers([...toFirst(frequentSize), ...others], bank)
      .overview()
      .find(({ environment, engine }) => environment === 'live' && engine === 'gecko')
    expect(gecko).toMatchObject({ isLearned: true, disputed: 4 })
  })

  it('are learned from about 50 visitors with one document each', () => {
    const answersTo = (challenge: string) =>
      bankNumbersOf(challenge, now).map((number) => [bankIdOf(number, master), 'right'])
    const learnedFrom = (visitors: number) => {
      const rows = visitorsFrom(0, visitors).flatMap((visitor_digest, i) =>
        rowsOf(mine, i * hourMs, {
          engine: null,
          engine_family: 'gecko',
          visitor_digest,
          network_digest: networkOf(i % 60),
          engine_answers: Object.fromEntries(
            answersTo(hash('sha256', `challenge ${i}`, 'base64url')),
          ),
        }),
      )
      return createLearnedAnswers([...mergeAnswers(rows).values()], bank).progress(engine).isLearned
    }
    expect([30, 60].map(learnedFrom)).toEqual([false, true])
  })

  it('taught by an operator last half a year', () => {
    const until = now + 26 * weekMs
    const answer = { ...given('a', [0, 0]), taught: ['*'] }
    const rows = bankNumbersBetween(now, until).map((number) => toBank(number, answer))
    const isLearnedAt = (at: number) =>
      createLearnedAnswers(rows, { ...bank, now: at }).progress(engine).isLearned
    for (let week = 0; week <= 26; week++) expect(isLearnedAt(now + week * weekMs)).toBe(true)
    expect(isLearnedAt(until + 3 * weekMs)).toBe(false)
  })

  it('are learned even if many visitors invent different answers', () => {
    const number = bankNumberAt(3, now)
    const right = toBank(number, given('a', [60, 40], { at: [mine, other, third] }))
    const invented = Array.from({ length: 60 }, (_, i) =>
      toBank(number, given(`invented ${i}`, [3, 3], { from: 900 + 3 * i })),
    )
    const { question } = right
    const learned = createLearnedAnswers([right, ...invented], bank).answersTo({
      ...of,
      class: 'gecko',
      question,
    })
    expect(['a', 'invented 7'].map((answer) => learned?.has(answer))).toEqual([true, false])
  })
})

it('counts exactly below 32, and estimates from the stored hashes above', () => {
  expect(estimateVisitors(visitorsFrom(0, 31).sort())).toBe(31)
  const estimate = estimateVisitors(visitorsFrom(0, 10_000).sort().slice(0, 32))
  expect(estimate).toBeGreaterThan(5000)
  expect(estimate).toBeLessThan(20_000)
})
