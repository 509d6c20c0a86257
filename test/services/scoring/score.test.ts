import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manipulationVerdict } from '../../../services/scoring/explain/findings.ts'
import { highlightsOf } from '../../../services/scoring/explain/highlights.ts'
import { type ScoringModel, standardModel } from '../../../services/scoring/model/model.ts'
import { type ScoreInput, scoreOf, verdictOf } from '../../../services/scoring/model/score.ts'
import { stepsToScore } from '../../../services/scoring/model/steps.ts'
import type { FiredSignal } from '../../../services/scoring/signals/evaluate.ts'
import { plainRisk } from '../../support/plain-score.ts'
import { evaluateClient, evaluationOf, judgedSignals } from './support/sessions.ts'
import { desktopChrome } from './support/snapshots.ts'

const { facts } = evaluateClient(desktopChrome)
const anySignals = fc.subarray(judgedSignals)
const scored = (...given: Parameters<typeof evaluationOf>) => evaluationOf(...given).score
const runs = { numRuns: 300 }

describe('score', () => {
  it('is an integer from 0 to 100 that determines the verdict', () => {
    const categories = ['environment', 'behavioral', 'fingerprint', 'integrity', 'network']
    const isScore = (points: number) => Number.isInteger(points) && points >= 0 && points <= 100
    fc.assert(
      fc.property(anySignals, (fired) => {
        const { risk, verdict, breakdown } = scored(fired, facts)
        expect(verdict).toBe(risk >= 70 ? 'bot' : risk >= 40 ? 'inconclusive' : 'human')
        expect(Object.keys(breakdown)).toEqual(categories)
        expect([risk, ...Object.values(breakdown)].filter((one) => !isScore(one))).toEqual([])
      }),
      runs,
    )
  })

  const unproven = judgedSignals.filter(({ slug }) => slug !== 'verified_agent')

  it('never rises with a trust signal, and never falls with a risk signal', () => {
    fc.assert(
      fc.property(fc.subarray(unproven), fc.constantFrom(...unproven), (fired, more) => {
        const without = scored(
          fired.filter((one) => one !== more),
          facts,
        ).risk
        const within = scored([...fired.filter((one) => one !== more), more], facts).risk
        if (more.role === 'risk') expect(within).toBeGreaterThanOrEqual(without)
        else expect(within).toBeLessThanOrEqual(without)
      }),
      runs,
    )
  })

  it('is that of a bot with any definitive signal', () => {
    const definitive = judgedSignals.filter(({ strength }) => strength === 'definitive')
    fc.assert(
      fc.property(anySignals, fc.constantFrom(...definitive), (fired, one) => {
        expect(scored([...fired, one], facts).verdict).toBe('bot')
      }),
      runs,
    )
  })

  it('is 70 for a proven program, regardless of other signals', () => {
    const [proven] = judgedSignals.filter(({ slug }) => slug === 'verified_agent')
    if (!proven) throw new Error('no proven signal')
    fc.assert(
      fc.property(fc.subarray(unproven), fc.boolean(), (fired, hasSnapshot) => {
        const seen = hasSnapshot ? facts : { ...facts, snapshot: null }
        expect(scored([proven, ...fired], seen)).toMatchObject({ risk: 70, verdict: 'bot' })
      }),
      runs,
    )
  })

  it('counts all signals if the model has no proven signals', () => {
    const model = { ...standardModel, proven: [] }
    const driven = { signals: ['verified_agent', 'webdriver_detected'], hasSnapshot: true }
    expect(scoreOf(standardModel, driven)).toMatchObject({ risk: 70, bound: { kind: 'proven' } })
    expect(scoreOf(model, driven)).toMatchObject({ risk: 100, bound: null })
  })

  it('is below bot with only weak and moderate signals, or strong ones of a single channel', () => {
    const channels = [...new Set(judgedSignals.map(({ channel }) => channel))]
    fc.assert(
      fc.property(anySignals, fc.constantFrom(...channels), (fired, channel) => {
        const isWeaker = ({ strength }: FiredSignal) =>
          strength === 'weak' || strength === 'moderate'
        const ofChannel = (one: FiredSignal) =>
          one.channel === channel && one.strength !== 'definitive'
        expect(scored(fired.filter(isWeaker), facts).verdict).not.toBe('bot')
        expect(scored(fired.filter(ofChannel), facts).verdict).not.toBe('bot')
      }),
      runs,
    )
  })

  it('is below bot with all identity contradictions, which user agent switchers cause', () => {
    const contradictions = judgedSignals.filter(
      ({ role, strength, channel, category }) =>
        role === 'risk' &&
        (channel === 'identity' || (category === 'fingerprint' && strength === 'moderate')),
    )
    expect(scored(contradictions, facts).verdict).not.toBe('bot')
  })

  it('is never human if required evidence is missing, regardless of trust signals', () => {
    const unearned = judgedSignals.filter(({ floor }) => floor !== null)
    const trust = judgedSignals.filter(({ role }) => role === 'trust')
    for (const one of unearned) expect(scored([one, ...trust], facts).verdict).not.toBe('human')
  })

  it('stays human with all weak signals', () => {
    const weak = judgedSignals.filter(
      ({ strength, role, floor }) => strength === 'weak' && role === 'risk' && floor === null,
    )
    expect(scored(weak, facts).verdict).toBe('human')
  })

  it('is never human without a snapshot', () => {
    fc.assert(
      fc.property(anySignals, (fired) => {
        expect(scored(fired, { ...facts, snapshot: null }).verdict).not.toBe('human')
      }),
      runs,
    )
  })

  it('maps to a verdict by band', () => {
    const verdicts = [0, 39, 40, 69, 70, 100].map(verdictOf)
    expect(verdicts).toEqual(['human', 'human', 'inconclusive', 'inconclusive', 'bot', 'bot'])
  })

  it('of manipulation has its own bands', () => {
    const verdicts = [0, 1, 33, 34, 66, 67, 100].map(manipulationVerdict)
    expect(verdicts).toEqual(['none', 'low', 'low', 'medium', 'medium', 'high', 'high'])
  })
})

/** Returns the sum of the signals, without any limit. */
function sumOf(fired: FiredSignal[]): number {
  const of = (role: FiredSignal['role']) =>
    fired.filter((signal) => signal.role === role).map(({ points }) => points)
  const doubt = of('risk').reduce((left, points) => left * (1 - points / 100), 1)
  const trust = of('trust').reduce((total, points) => total + points, 0)
  return Math.max(0, 100 * (1 - doubt) - trust)
}

const keyOf = {
  cap: 'unconfirmed',
  floor: 'unearned',
  groups: 'counted_together',
  proven: 'proven_identity',
  none: '',
}
// Highlights that explain why a score differs from the sum.
const reasons = ['no_snapshot', 'unconfirmed', 'unearned', 'counted_together', 'proven_identity']

describe('highlights', () => {
  it('explain why the score differs from the sum of its signals', () => {
    fc.assert(
      fc.property(anySignals, fc.boolean(), (fired, hasSnapshot) => {
        const seen = hasSnapshot ? facts : { ...facts, snapshot: null }
        const { risk, bound } = scored(fired, seen)
        const highlights = highlightsOf(evaluationOf(fired, seen))
        const shown = highlights.filter(({ key }) => reasons.includes(key))
        const decides = fired.some(({ strength }) => strength === 'definitive')
        const isSum = Math.abs(risk - sumOf(fired)) <= 0.5001
        if (!decides && !isSum) expect(shown.length).toBeGreaterThan(0)
        if (bound?.kind === 'cap') expect(risk).toBe(69)
        if (bound?.kind === 'floor') expect(risk).toBe(bound.min)
        if (bound?.kind === 'proven') expect(risk).toBe(bound.score)
        if (bound?.kind === 'groups') expect(isSum).toBe(false)
        const numbers = shown.flatMap(({ summary }) => summary.match(/\d+/g) ?? []).map(Number)
        if (bound && bound.kind !== 'groups') expect(numbers).toContain(risk)
        expect(shown.some(({ key }) => key === keyOf[bound?.kind ?? 'none'])).toBe(bound !== null)
      }),
      runs,
    )
  })

  it('include context if any fired, and cover every signal', () => {
    fc.assert(
      fc.property(anySignals, (fired) => {
        const highlights = highlightsOf(evaluationOf(fired, { ...facts, visitorSessions: 0 }))
        const isContext = ({ role, slug }: FiredSignal) =>
          role === 'context' && slug !== 'returning_visitor_fingerprint'
        const shown = highlights.filter(
          ({ effect, key }) => effect === 'context' && !reasons.includes(key),
        )
        expect(shown.length > 0).toBe(fired.some(isContext))
      }),
      runs,
    )
    // Trust signals need no highlight.
    const covered = judgedSignals.filter(
      ({ role, slug }) => role !== 'trust' && slug !== 'returning_visitor_fingerprint',
    )
    for (const one of covered) {
      const related = covered.filter(
        ({ channel, role }) => channel === one.channel && role === one.role,
      )
      expect([one.slug, highlightsOf(evaluationOf(related, facts)).length > 0]).toEqual([
        one.slug,
        true,
      ])
    }
  })

  it('are at most five with unique keys, risks first', () => {
    fc.assert(
      fc.property(anySignals, fc.integer({ min: 0, max: 3 }), (fired, visitorSessions) => {
        const highlights = highlightsOf(evaluationOf(fired, { ...facts, visitorSessions }))
        expect(highlights.length).toBeLessThanOrEqual(5)
        expect(new Set(highlights.map(({ key }) => key)).size).toBe(highlights.length)
        const isRisk = highlights.map(({ effect }) => effect === 'increases_risk')
        expect(isRisk).toEqual(isRisk.toSorted((one, other) => Number(other) - Number(one)))
      }),
      runs,
    )
  })
})

const slugs = Object.keys(standardModel.signals)
const signalsFired = fc.record({
  signals: fc.oneof(fc.subarray(slugs, { maxLength: 6 }), fc.subarray(slugs)),
  hasSnapshot: fc.boolean(),
})
const points = fc.integer({ min: 0, max: 100 })
/** Generates models with any points, including some that are not valid for customers. */
const models = fc
  .record({
    changed: fc.dictionary(
      fc.constantFrom(...slugs),
      fc.record({ points, floor: fc.option(points) }),
    ),
    caps: fc.record({ weak: points, habits: points, trust: points, unconfirmed: points }),
    no_snapshot: points,
  })
  .map(({ changed, caps, no_snapshot }): ScoringModel => {
    const signals = Object.entries(standardModel.signals).map(([slug, signal]) => {
      const own = signal.role === 'context' ? undefined : changed[slug]
      return [slug, { ...signal, ...own, ...(signal.role !== 'risk' && { floor: null }) }]
    })
    return { ...standardModel, caps, floors: { no_snapshot }, signals: Object.fromEntries(signals) }
  })

const kindsOf = (scored: ScoreInput) =>
  stepsToScore(standardModel, scored).steps.map(({ kind }) => kind)
const totalsOf = (scored: ScoreInput) =>
  stepsToScore(standardModel, scored).steps.map(({ total }) => total)

describe('the steps of a score', () => {
  it('add up to the score, with any model', () => {
    fc.assert(
      fc.property(fc.oneof(fc.constant(standardModel), models), signalsFired, (model, scored) => {
        const { steps } = stepsToScore(model, scored)
        const { risk } = scoreOf(model, scored)
        expect(steps.at(-1)?.total ?? 0).toBe(risk)
        expect(steps.reduce((sum, { change }) => sum + change, 0)).toBeCloseTo(risk, 6)
      }),
      { numRuns: 1000 },
    )
  })

  it('match another implementation before rounding', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.constant(standardModel), models),
        signalsFired,
        (model, { signals, hasSnapshot }) => {
          const { steps } = stepsToScore(model, { signals, hasSnapshot })
          const exact = steps.findLast(({ kind }) => kind !== 'rounding')?.total ?? 0
          const plain = plainRisk(model, { signals, has_snapshot: hasSnapshot })
          expect(Math.abs(exact - plain)).toBeLessThan(0.0051)
        },
      ),
      { numRuns: 1000 },
    )
  })

  it('name each signal once, either in a step or as without effect', () => {
    fc.assert(
      fc.property(models, signalsFired, (model, scored) => {
        const { steps, without_effect } = stepsToScore(model, scored)
        const counted = steps.flatMap(({ kind, signal }) =>
          kind === 'signal' && signal ? [signal] : [],
        )
        expect(new Set(counted).size).toBe(counted.length)
        const all = [...steps.flatMap(({ signal }) => signal ?? []), ...without_effect]
        const fired = scored.signals.filter((slug) => model.signals[slug]?.role !== 'context')
        expect([...new Set(all)].toSorted()).toEqual(fired.toSorted())
      }),
      { numRuns: 1000 },
    )
  })

  it('are a single step if one signal decides alone', () => {
    const signals = ['webdriver_detected', 'hosting_network', 'natural_typing']
    expect(stepsToScore(standardModel, { signals, hasSnapshot: true })).toEqual({
      steps: [
        { kind: 'signal', signal: 'webdriver_detected', bound: null, total: 100, change: 100 },
      ],
      without_effect: ['hosting_network', 'natural_typing'],
    })
  })

  it('show floors, and a minimum of 0', () => {
    const unconfirmed = [
      'user_agent_overridden',
      'phone_with_desktop_graphics',
      'bot_like_user_agent',
    ]
    const strong = unconfirmed.slice(0, 1)
    expect(kindsOf({ signals: strong, hasSnapshot: true })).toEqual(['signal'])
    expect(kindsOf({ signals: strong, hasSnapshot: false })).toEqual(['signal'])
    expect(kindsOf({ signals: [], hasSnapshot: false })).toEqual(['no_snapshot_floor'])
    expect(kindsOf({ signals: [], hasSnapshot: true })).toEqual([])
    expect(totalsOf({ signals: ['natural_typing'], hasSnapshot: true })).toEqual([-6, 0])
  })
})
