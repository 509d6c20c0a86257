import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ScoringModel, standardModel } from '../../../services/scoring/model/model.ts'
import { type Scored, scoreOf } from '../../../services/scoring/model/score.ts'
import { stepsToScore } from '../../../services/scoring/model/steps.ts'
import { plainRisk } from '../../support/plain-score.ts'

const slugs = Object.keys(standardModel.signals)
const some = fc.record({
  signals: fc.oneof(fc.subarray(slugs, { maxLength: 6 }), fc.subarray(slugs)),
  hasSnapshot: fc.boolean(),
})
const points = fc.integer({ min: 0, max: 100 })
/** Models that count in any way that a customer's may, and in some that it may not. */
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

const kindsOf = (scored: Scored) =>
  stepsToScore(standardModel, scored).steps.map(({ kind }) => kind)
const totalsOf = (scored: Scored) =>
  stepsToScore(standardModel, scored).steps.map(({ total }) => total)

describe('the steps of a score', () => {
  it('add up to the score that scoring computes, by any model', () => {
    fc.assert(
      fc.property(fc.oneof(fc.constant(standardModel), models), some, (model, scored) => {
        const { steps } = stepsToScore(model, scored)
        const { risk } = scoreOf(model, scored)
        expect(steps.at(-1)?.total ?? 0).toBe(risk)
        expect(steps.reduce((sum, { change }) => sum + change, 0)).toBeCloseTo(risk, 6)
      }),
      { numRuns: 1000 },
    )
  })

  it('reach without rounding what another implementation of the rule reaches', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.constant(standardModel), models),
        some,
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

  it('name each signal that counts once, and apart from them those that changed nothing', () => {
    fc.assert(
      fc.property(models, some, (model, scored) => {
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

  it('are one where a signal decides alone', () => {
    const signals = ['webdriver_detected', 'hosting_network', 'natural_typing']
    expect(stepsToScore(standardModel, { signals, hasSnapshot: true })).toEqual({
      steps: [
        { kind: 'signal', signal: 'webdriver_detected', bound: null, total: 100, change: 100 },
      ],
      without_effect: ['hosting_network', 'natural_typing'],
    })
  })

  it('say where evidence was capped, and where it was missing', () => {
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
