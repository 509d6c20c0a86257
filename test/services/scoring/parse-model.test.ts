import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ApiError } from '../../../infra/errors/errors.ts'
import { type ScoringModel, standardModel } from '../../../services/scoring/model/model.ts'
import { parseCustomModel, parseStoredModel } from '../../../services/scoring/model/parse-model.ts'
import { scoreOf } from '../../../services/scoring/model/score.ts'

const withSignal = (slug: string, change: object): object => ({
  ...standardModel,
  signals: { ...standardModel.signals, [slug]: { ...standardModel.signals[slug], ...change } },
})

function problemsOf(model: unknown): string[] {
  try {
    parseCustomModel(typeof model === 'string' ? model : JSON.stringify(model))
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return (error.details?.fields ?? []).map(({ name, expected }) => `${name}: ${expected}`)
  }
  return []
}

describe("a customer's own model", () => {
  it.each([
    ['the standard signals', standardModel],
    ['another name', { ...standardModel, name: 'acme' }],
    ['other points', withSignal('lone_click', { points: 100 })],
    ['a signal without points', withSignal('replayed_session', { points: 0 })],
    ['an additional floor', withSignal('lone_click', { floor: 60 })],
    ['a higher floor', withSignal('engine_unproven', { floor: 69 })],
    ['no proven signals', { ...standardModel, proven: [] }],
    ['other caps', { ...standardModel, caps: { weak: 0, habits: 100, trust: 0, unconfirmed: 60 } }],
  ])('is valid with %s', (_, model) => {
    expect(problemsOf(model)).toEqual([])
  })

  it.each<[string, change: object, problem: string]>([
    ['points above 100', { points: 101 }, 'points: a whole number from 0 to 100'],
    ['half a point', { points: 1.5 }, 'points: a whole number from 0 to 100'],
    ['another strength', { strength: 'strong' }, 'strength: moderate'],
    ['another role', { role: 'trust' }, 'role: risk'],
    ['an unknown member', { weight: 3 }, 'weight: no such member'],
  ])('is invalid if a signal has %s', (_, change, problem) => {
    expect(problemsOf(withSignal('lone_click', change))).toEqual([`signals.lone_click.${problem}`])
  })

  const { lone_click = {}, webdriver_detected: _, ...others } = standardModel.signals
  const lowered = 'at least 45'

  it.each<[string, model: unknown, problem: string]>([
    ['invalid JSON', '{', 'model: object'],
    [
      'a lowered definitive signal',
      withSignal('webdriver_detected', { points: 99 }),
      'signals.webdriver_detected.points: at least 100',
    ],
    [
      'a lowered floor',
      withSignal('engine_unproven', { floor: 44 }),
      `signals.engine_unproven.floor: ${lowered}`,
    ],
    [
      'a removed floor',
      withSignal('engine_unproven', { floor: null }),
      `signals.engine_unproven.floor: ${lowered}`,
    ],
    [
      'a floor of a trust signal',
      withSignal('natural_typing', { floor: 50 }),
      'signals.natural_typing.floor: null unless the role is risk',
    ],
    [
      'points for a context signal',
      withSignal('velocity_address', { points: 5 }),
      'signals.velocity_address.points: 0 for context signals',
    ],
    [
      'a missing signal',
      { ...standardModel, signals: { ...others, lone_click } },
      'signals.webdriver_detected: present, like every signal of this release',
    ],
    [
      'an unknown signal',
      withSignal('constructor', lone_click),
      'signals.constructor: a signal of this release',
    ],
    [
      'bot verdicts without confirmation',
      { ...standardModel, caps: { ...standardModel.caps, unconfirmed: 70 } },
      'caps.unconfirmed: at most 69, below the verdict bot',
    ],
    [
      'a lower floor without a snapshot',
      { ...standardModel, floors: { no_snapshot: 49 } },
      'floors.no_snapshot: at least 50',
    ],
    [
      'an additional proven signal',
      { ...standardModel, proven: ['verified_agent', 'natural_typing'] },
      'proven.1: verified_agent',
    ],
    [
      'the version of another release',
      { ...standardModel, version: '3' },
      'version: 6, after merging the changes of the standard model',
    ],
  ])('is invalid with %s', (_, model, problem) => {
    expect(problemsOf(model)).toEqual([problem])
  })

  it('reports all problems at once', () => {
    const model = { ...withSignal('lone_click', { role: 'trust' }), floors: { no_snapshot: 0 } }
    expect(problemsOf(model)).toHaveLength(2)
  })

  it('keeps the floors and definitive signals of the standard model', () => {
    const slugs = Object.keys(standardModel.signals)
    fc.assert(
      fc.property(validModel(), fc.subarray(slugs), fc.boolean(), (model, signals, hasSnapshot) => {
        expect(problemsOf(model)).toEqual([])
        const own = scoreOf(model, { signals, hasSnapshot })
        const judged = signals.flatMap((slug) => standardModel.signals[slug] ?? [])
        const floors = judged.flatMap(({ role, floor }) => (role === 'risk' ? (floor ?? 0) : 0))
        expect(own.risk).toBeGreaterThanOrEqual(Math.max(0, ...floors))
        if (judged.some(({ strength }) => strength === 'definitive'))
          expect(own.verdict).toBe('bot')
      }),
    )
  })
})

it('a stored model of another release gets the signals of this one', () => {
  const { engine_unproven: _, ...known } = standardModel.signals
  const signals = { ...known, gone: standardModel.signals.engine_unproven }
  expect(parseStoredModel(JSON.stringify({ ...standardModel, signals }))).toEqual(standardModel)
})

/** Generates valid models with other points. */
function validModel(): fc.Arbitrary<ScoringModel> {
  const free = Object.entries(standardModel.signals).filter(
    ([, { role, strength }]) => role !== 'context' && strength !== 'definitive',
  )
  const { length } = free
  const point = fc.integer({ min: 0, max: 100 })
  const points = fc.array(point, { minLength: length, maxLength: length })
  return points.map((all) => ({
    ...standardModel,
    signals: {
      ...standardModel.signals,
      ...Object.fromEntries(
        free.map(([slug, signal], i) => [slug, { ...signal, points: all[i] ?? 0 }]),
      ),
    },
  }))
}
