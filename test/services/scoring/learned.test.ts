import { hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { bankIdOf, bankNumberAt, bankNumbersOf, frequentSize } from '../../../infra/challenges/bank.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { answerDigest, classDigest } from '../../../projections/answers/digests.ts'
import { answerRows, distinct, mergeAnswers } from '../../../projections/answers/projection.ts'
import type { ClassAnswer } from '../../../projections/answers/queries.ts'
import { learnFrom } from '../../../services/scoring/learned.ts'
import type { LearnedAnswers } from '../../../services/scoring/session/answers.ts'
import { sessionScored } from '../../support/session-scored.ts'

const [mine, other, third, evil] = ['org_mine', 'org_other', 'org_third', 'org_evil'].map((id) => ({ id }))
if (!mine || !other || !third || !evil) throw new Error('four organizations')
type Organization = typeof mine

const of = { environment: 'live', class: 'blink 156', question: '7', organizationId: mine.id } as const
const hashes = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => hash('sha256', `visitor ${from + i}`).slice(0, 16))

/** So many visitors from so many networks, who visit the organizations in turn. */
function given(
  answer: string,
  [visitors, networks]: [number, number],
  at: Organization[] = [mine as Organization],
  from = 0,
): ClassAnswer {
  const rows = hashes(visitors, from).map((visitor, i) => {
    const { id } = at[i % at.length] as Organization
    const network_digest = hash('sha256', `network ${from + (i % networks)}`).slice(0, 16)
    return answerRows({
      ...scored,
      organization_id: id,
      given_answers: { ...answered, network_digest, visitor_digest: visitor },
    })
  })
  const [merged] = [...mergeAnswers(rows.flat()).values()]
  const none = { visitors: [], organizations: {}, by_operator: false }
  return {
    ...{
      environment: 'live',
      question: of.question,
      class: classDigest(of.class),
      answer: answerDigest(answer),
    },
    ...(merged
      ? { visitors: merged.visitors, organizations: merged.organizations, by_operator: false }
      : none),
  }
}

const scored = sessionScored()
const answered = {
  ...{ engine: classDigest('blink 156'), engine_family: 'blink', canvas_class: null, canvas_seed: null },
  ...{ canvas_answer: null, engine_answers: { 7: 'x' }, is_consistent: true, handshake: null },
}

const known = (answers: ClassAnswer[], question: Parameters<LearnedAnswers['right']>[0] = of) => {
  const right = learnFrom(answers, { now: 0, keys: [] }).right(question)
  return right && ['a', 'b', 'poison'].filter((answer) => right.has(answer))
}

describe('answers that were learned', () => {
  it('count from twenty visitors of ten networks on', () => {
    expect(known([given('a', [19, 19])])).toBeUndefined()
    expect(known([given('a', [40, 9])])).toBeUndefined()
    expect(known([given('a', [20, 10])])).toEqual(['a'])
    expect(known([given('a', [20, 10])], { ...of, environment: 'test' })).toBeUndefined()
  })

  it('may be several, and are not known where they scatter', () => {
    expect(known([given('a', [30, 20]), given('b', [25, 12], [mine], 100)])).toEqual(['a', 'b'])
    const scattered = Array.from({ length: 5 }, (_, i) => given(`other ${i}`, [1, 1], [mine], 200 + i))
    expect(known([given('a', [40, 20]), ...scattered])).toBeUndefined()
  })

  it('are not made by a few who repeat themselves', () => {
    const poison = given('poison', [15, 2], [mine], 500)
    expect(known([given('a', [60, 30]), poison]) ?? []).not.toContain('poison')
  })

  it('of one organization or two are only theirs, and of three are for everybody', () => {
    const elsewhere = { ...of, organizationId: other.id }
    const everywhere = { ...of, organizationId: 'org_new' }
    expect(known([given('a', [40, 20])], elsewhere)).toBeUndefined()
    const ofTwo = given('a', [60, 40], [mine, other])
    expect([known([ofTwo], elsewhere), known([ofTwo], everywhere)]).toEqual([['a'], undefined])
    const ofThree = given('a', [60, 40], [mine, other, third])
    expect(known([ofThree], everywhere)).toEqual(['a'])
  })

  it.each([10, 100, 1000])(
    'of one organization alone move nobody else by any share, with %i visitors of it',
    (count) => {
      const right = given('a', [90, 60], [mine, other, third])
      const poison = given('poison', [count, count], [evil], 5000)
      expect(known([right, poison])).toEqual(['a'])
      const own = known([right, poison], { ...of, organizationId: evil.id })
      // By itself it has many who answer otherwise: it learns that, or nothing.
      if (count > 90) expect(own).toEqual(['a', 'poison'])
      if (count === 10) expect(own).toBeUndefined()
    },
  )

  it('of one organization alone take nothing from others either, however often it says what they say', () => {
    const few = given('a', [60, 40], [mine, other, third])
    const flood = given('a', [3000, 500], [evil], 5000)
    const everywhere = { ...of, organizationId: 'org_new' }
    expect(known([merged(few, flood)], everywhere)).toEqual(['a'])
  })

  it.each([
    ['20 organizations alike', Array.from({ length: 20 }, (_, i) => ({ id: `org_${i}` }))],
    ['one with seven in ten', [...Array.from({ length: 7 }, () => mine), other, third, evil]],
  ])('of %s hold for all', (_, at) => {
    expect(known([given('a', [2000, 300], at)], { ...of, organizationId: 'org_new' })).toEqual(['a'])
  })

  it('of one network at many organizations are of one network', () => {
    const at = Array.from({ length: 30 }, (_, i) => ({ id: `org_${i}` }))
    expect(known([given('a', [2000, 1], at)], { ...of, organizationId: 'org_new' })).toBeUndefined()
  })

  it('of the browser of an operator count at once and for everybody', () => {
    const answer = { ...given('a', [0, 0]), by_operator: true }
    expect(known([answer], { ...of, organizationId: 'org_new' })).toEqual(['a'])
    expect(known([answer, given('b', [30, 20], [mine], 100)])).toEqual(['a', 'b'])
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
  const year = 365 * 24 * 60 * 60 * 1000
  const learnedOf = (places: number) =>
    Array.from({ length: places }, (_, place) => ({
      ...given('a', [20, 10]),
      class: classDigest('gecko'),
      question: String(bankIdOf(bankNumberAt(place, now), master)),
    }))

  it('prove an engine once nine in ten of the frequent ones are known, and no longer when others took their place', () => {
    const engine = { environment: 'live', organizationId: mine.id, class: 'gecko' } as const
    expect(learnFrom(learnedOf(frequentSize * 0.9 - 1), bank).knowsBank(engine)).toBe(false)
    const learned = learnedOf(frequentSize * 0.9)
    expect(learnFrom(learned, bank).knowsBank(engine)).toBe(true)
    expect(learnFrom(learned, bank).knowsBank({ ...engine, class: 'blink' })).toBe(false)
    expect(learnFrom(learned, bank).knowsBank({ ...engine, organizationId: other.id })).toBe(false)
    expect(learnFrom(learned, { ...bank, now: now + year / 4 }).knowsBank(engine)).toBe(false)
    const newer = createKeyring(Buffer.alloc(32, 8).toString('base64')).current
    expect(learnFrom(learned, { ...bank, keys: [newer, master] }).knowsBank(engine)).toBe(false)
  })

  it('are learned from 200 visitors of one customer, of whom each opened one document', () => {
    const engine = { environment: 'live', organizationId: mine.id, class: 'gecko' } as const
    const learnedFrom = (visitors: number) => {
      const rows = hashes(visitors).flatMap((visitor_digest, i) =>
        answerRows({
          ...scored,
          organization_id: mine.id,
          given_answers: {
            ...{ ...answered, engine: null, engine_family: 'gecko', visitor_digest },
            network_digest: hash('sha256', `network ${i % 60}`).slice(0, 16),
            engine_answers: Object.fromEntries(
              bankNumbersOf(`challenge ${i}`, now).map((number) => [bankIdOf(number, master), 'right']),
            ),
          },
        }),
      )
      return learnFrom([...mergeAnswers(rows).values()], bank)
    }
    expect(learnedFrom(200).knowsBank(engine)).toBe(true)
    expect(learnedFrom(100).knowsBank(engine)).toBe(false)
  })

  it('are known also where many invent answers, each another one', () => {
    const question = String(bankIdOf(bankNumberAt(3, now), master))
    const inClass = { class: classDigest('gecko'), question }
    const invented = Array.from({ length: 60 }, (_, i) => ({
      ...given(`invented ${i}`, [3, 3], [mine], 900 + 3 * i),
      ...inClass,
    }))
    const right = { ...given('a', [60, 40], [mine, other, third]), ...inClass }
    const learned = learnFrom([right, ...invented], bank).right({ ...of, class: 'gecko', question })
    expect(['a', 'invented 7'].map((answer) => learned?.has(answer))).toEqual([true, false])
  })
})

it('counts exactly below 32, and by the hashes that were kept beyond that', () => {
  expect(distinct(hashes(31).sort())).toBe(31)
  const estimate = distinct(hashes(10_000).sort().slice(0, 32))
  expect(estimate).toBeGreaterThan(5000)
  expect(estimate).toBeLessThan(20_000)
})
