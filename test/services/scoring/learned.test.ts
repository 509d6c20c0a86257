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
import { answerRows, distinct, mergeAnswers } from '../../../projections/answers/projection.ts'
import type { ClassAnswer } from '../../../projections/answers/queries.ts'
import { sessionScored } from '../../support/session-scored.ts'

const [mine, other, third, evil] = ['org_mine', 'org_other', 'org_third', 'org_evil'].map((id) => ({
  id,
}))
if (!mine || !other || !third || !evil) throw new Error('four organizations')
type Organization = typeof mine

const of = {
  environment: 'live',
  class: 'blink 156',
  question: '7',
  organizationId: mine.id,
} as const
const hashes = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => hash('sha256', `visitor ${from + i}`).slice(0, 16))

const hourMs = 60 * 60 * 1000

/** So many visitors from so many networks, who visit the organizations in turn, each 25 hours after the one before. */
function given(
  answer: string,
  [visitors, networks]: [number, number],
  at: Organization[] = [mine as Organization],
  from = 0,
  everyMs = 25 * hourMs,
): ClassAnswer {
  const rows = hashes(visitors, from).map((visitor, i) => {
    const { id } = at[i % at.length] as Organization
    const network_digest = hash('sha256', `network ${from + (i % networks)}`).slice(0, 16)
    return answerRows({
      ...scored,
      organization_id: id,
      evaluated_at: i * everyMs,
      given_answers: { ...answered, network_digest, visitor_digest: visitor },
    })
  })
  const [merged] = [...mergeAnswers(rows.flat()).values()]
  const none = { visitors: [], organizations: {}, taught: [] }
  return {
    environment: 'live',
    question: of.question,
    class: classDigest(of.class),
    answer: answerDigest(answer),
    ...(merged
      ? { visitors: merged.visitors, organizations: merged.organizations, taught: [] }
      : none),
  }
}

const scored = sessionScored()
const answered = {
  engine: classDigest('blink 156'),
  engine_family: 'blink',
  canvas_class: null,
  canvas_seed: null,
  canvas_answer: null,
  engine_answers: { 7: 'x' },
  is_consistent: true,
  handshake: null,
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

  it('wait until they were given in six different hours, however many give them', () => {
    expect(known([given('a', [400, 100], undefined, 0, 0)])).toBeUndefined()
    expect(known([given('a', [400, 100], undefined, 0, hourMs / 100)])).toBeUndefined()
    expect(known([given('a', [400, 100], undefined, 0, hourMs / 60)])).toEqual(['a'])
  })

  it('count a network twice a day, and a visitor once', () => {
    const [flood] = [given('a', [500, 1], undefined, 0, hourMs / 50)]
    expect(distinct(flood?.visitors ?? [])).toBe(2)
    const days = given('a', [10, 1], undefined, 0, 24 * hourMs)
    expect(distinct(days.visitors)).toBe(10)
    const [visitor = ''] = given('a', [1, 1]).visitors
    const again = hashes(10).map((slot) => `${slot.slice(0, 8)}${visitor.slice(8)}`)
    expect(distinct(again)).toBe(1)
  })

  it.each([2, 5])(
    'count visitors who come back %i times, each from several networks, at one organization',
    (times) => {
      const rows = Array.from({ length: 60 * times }, (_, i) => {
        const [visitor_digest] = hashes(1, i % 60)
        const network_digest = hash('sha256', `network ${i % 97}`).slice(0, 16)
        const given_answers = { ...answered, network_digest, visitor_digest: visitor_digest ?? '' }
        return answerRows({
          ...scored,
          organization_id: of.organizationId,
          evaluated_at: i * 25 * hourMs,
          given_answers,
        })
      })
      const [row] = [...mergeAnswers(rows.flat()).values()]
      if (!row) throw new Error('one answer')
      const { id: _, ...merged } = row
      const by = distinct(
        merged.organizations[Object.keys(merged.organizations)[0] ?? '']?.visitors ?? [],
      )
      expect(by).toBeGreaterThan(20)
      const learned = learnFrom([{ ...merged, class: classDigest(of.class) }], { now: 0, keys: [] })
      expect(learned.right(of)).toBeDefined()
    },
  )

  it('may be several, and are not known where they scatter', () => {
    expect(known([given('a', [30, 20]), given('b', [25, 12], [mine], 100)])).toEqual(['a', 'b'])
    const scattered = Array.from({ length: 5 }, (_, i) =>
      given(`other ${i}`, [1, 1], [mine], 200 + i),
    )
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
    expect(known([given('a', [2000, 300], at)], { ...of, organizationId: 'org_new' })).toEqual([
      'a',
    ])
  })

  it('of one network at many organizations are of one network', () => {
    const at = Array.from({ length: 30 }, (_, i) => ({ id: `org_${i}` }))
    expect(known([given('a', [2000, 1], at)], { ...of, organizationId: 'org_new' })).toBeUndefined()
  })

  it('of the browser of an operator count at once and for everybody', () => {
    const answer = { ...given('a', [0, 0]), taught: ['*'] }
    expect(known([answer], { ...of, organizationId: 'org_new' })).toEqual(['a'])
    expect(known([answer, given('b', [30, 20], [mine], 100)])).toEqual(['a', 'b'])
  })

  it('stand no longer beside those of an operator, unless most of the class give them', () => {
    const taught = { ...given('a', [60, 30]), taught: ['*'] }
    expect(known([taught, given('poison', [40, 20], [mine], 100)])).toEqual(['a'])
    expect(known([taught, given('b', [90, 20], [mine], 100)])).toEqual(['a', 'b'])
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
  const learnedOf = (places: number) =>
    Array.from({ length: places }, (_, place) => ({
      ...given('a', [20, 10]),
      class: classDigest('gecko'),
      question: String(bankIdOf(bankNumberAt(place, now), master)),
    }))

  it('prove an engine once all but one of the frequent ones are known, and no longer when others took their place', () => {
    const engine = { environment: 'live', organizationId: mine.id, class: 'gecko' } as const
    const isLearned = (
      places: number,
      over: Partial<Parameters<typeof learnFrom>[1]> = {},
      of = {},
    ) => learnFrom(learnedOf(places), { ...bank, ...over }).progress({ ...engine, ...of }).isLearned
    expect(isLearned(frequentSize - 2)).toBe(false)
    expect(isLearned(frequentSize - 1)).toBe(true)
    expect(isLearned(frequentSize, {}, { class: 'blink' })).toBe(false)
    expect(isLearned(frequentSize, {}, { organizationId: other.id })).toBe(false)
    expect(isLearned(frequentSize, { now: now + 2 * weekMs })).toBe(false)
    const newer = createKeyring(Buffer.alloc(32, 8).toString('base64')).current
    expect(isLearned(frequentSize, { keys: [newer, master] })).toBe(false)
  })

  it('say how many visitors an engine still needs', () => {
    const engine = { environment: 'live', organizationId: mine.id, class: 'gecko' } as const
    const rows = (visitors: number) =>
      learnedOf(frequentSize).map((row) => ({
        ...given('a', [visitors, 10]),
        class: row.class,
        question: row.question,
      }))
    const progress = (visitors: number) => learnFrom(rows(visitors), bank).progress(engine)
    expect(progress(3)).toEqual({ isLearned: false, visitors: 3, needed: 20 })
    expect(progress(20)).toEqual({ isLearned: true, visitors: 20, needed: 20 })
    expect(learnFrom(rows(3), bank).overview()).toContainEqual({
      environment: 'live',
      engine: 'gecko',
      isLearned: false,
      visitors: 3,
      needed: 20,
      disputed: 0,
    })
  })

  it('are disputed where groups of networks answer otherwise', () => {
    const rows = learnedOf(frequentSize)
    const others = rows.slice(0, 4).map((row) => ({
      ...given('b', [20, 10], [mine], 100),
      class: row.class,
      question: row.question,
    }))
    const gecko = learnFrom([...rows, ...others], bank)
      .overview()
      .find(({ environment, engine }) => environment === 'live' && engine === 'gecko')
    expect(gecko).toMatchObject({ isLearned: true, disputed: 4 })
  })

  it('are learned from about 50 visitors of one customer, of whom each opened one document', () => {
    const engine = { environment: 'live', organizationId: mine.id, class: 'gecko' } as const
    const learnedFrom = (visitors: number) => {
      const rows = hashes(visitors).flatMap((visitor_digest, i) =>
        answerRows({
          ...scored,
          organization_id: mine.id,
          evaluated_at: i * hourMs,
          given_answers: {
            ...answered,
            engine: null,
            engine_family: 'gecko',
            visitor_digest,
            network_digest: hash('sha256', `network ${i % 60}`).slice(0, 16),
            engine_answers: Object.fromEntries(
              bankNumbersOf(hash('sha256', `challenge ${i}`, 'base64url'), now).map((number) => [
                bankIdOf(number, master),
                'right',
              ]),
            ),
          },
        }),
      )
      return learnFrom([...mergeAnswers(rows).values()], bank).progress(engine).isLearned
    }
    expect(learnedFrom(60)).toBe(true)
    expect(learnedFrom(30)).toBe(false)
  })

  it('of an operator last for half a year', () => {
    const until = now + 26 * weekMs
    const rows = bankNumbersBetween(now, until).map((number) => ({
      ...given('a', [0, 0]),
      taught: ['*'],
      class: classDigest('gecko'),
      question: String(bankIdOf(number, master)),
    }))
    const engine = { environment: 'live', organizationId: mine.id, class: 'gecko' } as const
    const isLearnedAt = (at: number) =>
      learnFrom(rows, { ...bank, now: at }).progress(engine).isLearned
    for (let week = 0; week <= 26; week++) expect(isLearnedAt(now + week * weekMs)).toBe(true)
    expect(isLearnedAt(until + 3 * weekMs)).toBe(false)
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
