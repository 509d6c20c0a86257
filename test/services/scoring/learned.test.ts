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
import { type LearnedAnswers, learnFrom } from '../../../projections/answers/learned.ts'
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

/** The rows of a session that answered, by default question 7 as blink. */
const rowsOf = (organization_id: string, evaluated_at: number, some: Partial<GivenAnswers>) =>
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
      ...some,
    },
  })

interface From {
  /** Visited in turn. */
  at?: readonly string[]
  /** The number of the first visitor. */
  from?: number
  /** Between two visitors. */
  everyMs?: number
}

/** An answer that so many visitors from so many networks gave, at one organization unless `at` names several. */
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

const known = (
  answers: ClassAnswer[],
  question: Parameters<LearnedAnswers['answersTo']>[0] = of,
) => {
  const right = learnFrom(answers, { now: 0, keys: [] }).answersTo(question)
  return right && ['a', 'b', 'poison'].filter((answer) => right.has(answer))
}

describe('answers that were learned', () => {
  it('count from twenty visitors of ten networks on', () => {
    expect(known([given('a', [19, 19])])).toBeUndefined()
    expect(known([given('a', [40, 9])])).toBeUndefined()
    expect(known([given('a', [20, 10])])).toEqual(['a'])
    expect(known([given('a', [20, 10])], { ...of, environment: 'test' })).toBeUndefined()
  })

  it('wait until they were given in six different hours, however many give them', () => {
    expect(known([given('a', [400, 100], { everyMs: 0 })])).toBeUndefined()
    expect(known([given('a', [400, 100], { everyMs: hourMs / 100 })])).toBeUndefined()
    expect(known([given('a', [400, 100], { everyMs: hourMs / 60 })])).toEqual(['a'])
  })

  it('count a network twice a day, and a visitor once', () => {
    const flood = given('a', [500, 1], { everyMs: hourMs / 50 })
    expect(estimateVisitors(flood.visitors)).toBe(2)
    expect(estimateVisitors(given('a', [10, 1], { everyMs: 24 * hourMs }).visitors)).toBe(10)
    const [visitor = ''] = given('a', [1, 1]).visitors
    const again = visitorsFrom(0, 10).map((slot) => `${slot.slice(0, 8)}${visitor.slice(8)}`)
    expect(estimateVisitors(again)).toBe(1)
  })

  it.each([2, 5])(
    'count visitors who come back %i times, each from several networks, at one organization',
    (times) => {
      const rows = Array.from({ length: 60 * times }, (_, i) => {
        const [visitor_digest = ''] = visitorsFrom(i % 60, 1)
        return rowsOf(mine, i * 25 * hourMs, { network_digest: networkOf(i % 97), visitor_digest })
      })
      const [row] = [...mergeAnswers(rows.flat()).values()]
      if (!row) throw new Error('one answer')
      const [counted] = Object.values(row.organizations)
      expect(estimateVisitors(counted?.visitors ?? [])).toBeGreaterThan(20)
      const answer = { ...row, class: classDigest(of.class) }
      expect(learnFrom([answer], { now: 0, keys: [] }).answersTo(of)).toBeDefined()
    },
  )

  it('may be several, and are not known where they scatter', () => {
    expect(known([given('a', [30, 20]), given('b', [25, 12], { from: 100 })])).toEqual(['a', 'b'])
    const scattered = Array.from({ length: 5 }, (_, i) =>
      given(`other ${i}`, [1, 1], { from: 200 + i }),
    )
    expect(known([given('a', [40, 20]), ...scattered])).toBeUndefined()
  })

  it('are not made by a few who repeat themselves', () => {
    const poison = given('poison', [15, 2], { from: 500 })
    expect(known([given('a', [60, 30]), poison]) ?? []).not.toContain('poison')
  })

  it('of one organization or two are only theirs, and of three are for everybody', () => {
    const elsewhere = { ...of, organizationId: other }
    expect(known([given('a', [40, 20])], elsewhere)).toBeUndefined()
    const ofTwo = given('a', [60, 40], { at: [mine, other] })
    expect([known([ofTwo], elsewhere), known([ofTwo], everywhere)]).toEqual([['a'], undefined])
    const ofThree = given('a', [60, 40], { at: [mine, other, third] })
    expect(known([ofThree], everywhere)).toEqual(['a'])
  })

  it.each([10, 100, 1000])(
    'of one organization alone move nobody else by any share, with %i visitors of it',
    (count) => {
      const right = given('a', [90, 60], { at: [mine, other, third] })
      const poison = given('poison', [count, count], { at: [evil], from: 5000 })
      expect(known([right, poison])).toEqual(['a'])
      const own = known([right, poison], { ...of, organizationId: evil })
      // By itself it has many who answer otherwise: it learns that, or nothing.
      if (count > 90) expect(own).toEqual(['a', 'poison'])
      if (count === 10) expect(own).toBeUndefined()
    },
  )

  it('of one organization alone take nothing from others either, however often it says what they say', () => {
    const few = given('a', [60, 40], { at: [mine, other, third] })
    const flood = given('a', [3000, 500], { at: [evil], from: 5000 })
    expect(known([merged(few, flood)], everywhere)).toEqual(['a'])
  })

  it.each([
    ['20 organizations alike', Array.from({ length: 20 }, (_, i) => `org_${i}`)],
    ['one with seven in ten', [...Array.from({ length: 7 }, () => mine), other, third, evil]],
  ])('of %s hold for all', (_, at) => {
    expect(known([given('a', [2000, 300], { at })], everywhere)).toEqual(['a'])
  })

  it('of one network at many organizations are of one network', () => {
    const at = Array.from({ length: 30 }, (_, i) => `org_${i}`)
    expect(known([given('a', [2000, 1], { at })], everywhere)).toBeUndefined()
  })

  it('of the browser of an operator count at once and for everybody', () => {
    const answer = { ...given('a', [0, 0]), taught: ['*'] }
    expect(known([answer], everywhere)).toEqual(['a'])
    expect(known([answer, given('b', [30, 20], { from: 100 })])).toEqual(['a', 'b'])
  })

  it('stand no longer beside those of an operator, unless most of the class give them', () => {
    const taught = { ...given('a', [60, 30]), taught: ['*'] }
    expect(known([taught, given('poison', [40, 20], { from: 100 })])).toEqual(['a'])
    expect(known([taught, given('b', [90, 20], { from: 100 })])).toEqual(['a', 'b'])
  })
})

function merged(one: ClassAnswer, other: ClassAnswer): ClassAnswer {
  const [row] = [...mergeAnswers([one, other].map((given) => ({ id: 'x', ...given }))).values()]
  if (!row) throw new Error('two rows')
  return row
}

describe("the deployment's own questions", () => {
  const master = createKeyring(Buffer.alloc(32, 7).toString('base64')).current
  const now = Date.UTC(2026, 10, 24)
  const bank = { now, keys: [master] }
  const weekMs = 7 * 24 * hourMs
  const engine = { environment: 'live', organizationId: mine, class: 'gecko' } as const
  /** An answer to one of them. */
  const toBank = (number: number, answer: ClassAnswer): ClassAnswer => ({
    ...answer,
    class: classDigest('gecko'),
    question: String(bankIdOf(number, master)),
  })
  const toFirst = (places: number, answer = given('a', [20, 10])) =>
    Array.from({ length: places }, (_, place) => toBank(bankNumberAt(place, now), answer))

  it('prove an engine once all but one of the frequent ones are known, and no longer when others took their place', () => {
    const isLearned = (
      places: number,
      over: Partial<Parameters<typeof learnFrom>[1]> = {},
      of = {},
    ) => learnFrom(toFirst(places), { ...bank, ...over }).progress({ ...engine, ...of }).isLearned
    expect(isLearned(frequentSize - 2)).toBe(false)
    expect(isLearned(frequentSize - 1)).toBe(true)
    expect(isLearned(frequentSize, {}, { class: 'blink' })).toBe(false)
    expect(isLearned(frequentSize, {}, { organizationId: other })).toBe(false)
    expect(isLearned(frequentSize, { now: now + 2 * weekMs })).toBe(false)
    const newer = createKeyring(Buffer.alloc(32, 8).toString('base64')).current
    expect(isLearned(frequentSize, { keys: [newer, master] })).toBe(false)
  })

  it('say how many visitors an engine still needs', () => {
    const learned = (visitors: number) =>
      learnFrom(toFirst(frequentSize, given('a', [visitors, 10])), bank)
    const few = { isLearned: false, visitors: 3, needed: 20 }
    expect(learned(3).progress(engine)).toEqual(few)
    expect(learned(20).progress(engine)).toEqual({ isLearned: true, visitors: 20, needed: 20 })
    const gecko = { environment: 'live', engine: 'gecko', disputed: 0 }
    expect(learned(3).overview()).toContainEqual({ ...gecko, ...few })
  })

  it('are disputed where groups of networks answer otherwise', () => {
    const others = toFirst(4, given('b', [20, 10], { from: 100 }))
    const gecko = learnFrom([...toFirst(frequentSize), ...others], bank)
      .overview()
      .find(({ environment, engine }) => environment === 'live' && engine === 'gecko')
    expect(gecko).toMatchObject({ isLearned: true, disputed: 4 })
  })

  it('are learned from about 50 visitors of one customer, of whom each opened one document', () => {
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
      return learnFrom([...mergeAnswers(rows).values()], bank).progress(engine).isLearned
    }
    expect([30, 60].map(learnedFrom)).toEqual([false, true])
  })

  it('of an operator last for half a year', () => {
    const until = now + 26 * weekMs
    const answer = { ...given('a', [0, 0]), taught: ['*'] }
    const rows = bankNumbersBetween(now, until).map((number) => toBank(number, answer))
    const isLearnedAt = (at: number) =>
      learnFrom(rows, { ...bank, now: at }).progress(engine).isLearned
    for (let week = 0; week <= 26; week++) expect(isLearnedAt(now + week * weekMs)).toBe(true)
    expect(isLearnedAt(until + 3 * weekMs)).toBe(false)
  })

  it('are known also where many invent answers, each another one', () => {
    const number = bankNumberAt(3, now)
    const right = toBank(number, given('a', [60, 40], { at: [mine, other, third] }))
    const invented = Array.from({ length: 60 }, (_, i) =>
      toBank(number, given(`invented ${i}`, [3, 3], { from: 900 + 3 * i })),
    )
    const { question } = right
    const learned = learnFrom([right, ...invented], bank).answersTo({
      ...of,
      class: 'gecko',
      question,
    })
    expect(['a', 'invented 7'].map((answer) => learned?.has(answer))).toEqual([true, false])
  })
})

it('counts exactly below 32, and by the hashes that were kept beyond that', () => {
  expect(estimateVisitors(visitorsFrom(0, 31).sort())).toBe(31)
  const estimate = estimateVisitors(visitorsFrom(0, 10_000).sort().slice(0, 32))
  expect(estimate).toBeGreaterThan(5000)
  expect(estimate).toBeLessThan(20_000)
})
