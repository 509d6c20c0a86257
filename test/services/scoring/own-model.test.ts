import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ApiError } from '../../../infra/errors/errors.ts'
import { type ScoringModel, standardModel } from '../../../services/scoring/model/model.ts'
import { parseModel, storedModel } from '../../../services/scoring/model/own-model.ts'
import { scoreOf } from '../../../services/scoring/model/score.ts'

const withSignal = (slug: string, change: object): object => ({
  ...standardModel,
  signals: { ...standardModel.signals, [slug]: { ...standardModel.signals[slug], ...change } },
})

function refused(model: unknown): string[] {
  try {
    parseModel(typeof model === 'string' ? model : JSON.stringify(model))
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return (error.details?.fields ?? []).map(({ name, expected }) => `${name}: ${expected}`)
  }
  return []
}

describe("a customer's own model", () => {
  it.each([
    ['the standard one', standardModel],
    ['another name', { ...standardModel, name: 'acme' }],
    ['other points', withSignal('lone_click', { points: 100 })],
    ['points of nothing', withSignal('replayed_session', { points: 0 })],
    ['a floor that there was not', withSignal('lone_click', { floor: 60 })],
    ['a higher floor', withSignal('engine_unproven', { floor: 69 })],
    ['nobody that is proven', { ...standardModel, proven: [] }],
    ['other caps', { ...standardModel, caps: { weak: 0, habits: 100, trust: 0, unconfirmed: 60 } }],
  ])('may have %s', (_, model) => {
    expect(refused(model)).toEqual([])
  })

  it.each<[string, change: object, problem: string]>([
    ['points above 100', { points: 101 }, 'points: a whole number from 0 to 100'],
    ['half a point', { points: 1.5 }, 'points: a whole number from 0 to 100'],
    ['another strength', { strength: 'strong' }, 'strength: moderate'],
    ['another role', { role: 'trust' }, 'role: risk'],
    ['a member of its own', { weight: 3 }, 'weight: no such member'],
  ])('may not have %s of a signal', (_, change, problem) => {
    expect(refused(withSignal('lone_click', change))).toEqual([`signals.lone_click.${problem}`])
  })

  const { lone_click = {}, webdriver_detected: _, ...others } = standardModel.signals
  const lowered = '45 at least'

  it.each<[string, model: unknown, problem: string]>([
    ['no JSON', '{', 'model: object'],
    [
      'a definitive signal lowered',
      withSignal('webdriver_detected', { points: 99 }),
      'signals.webdriver_detected.points: 100 at least',
    ],
    [
      'a floor lowered',
      withSignal('engine_unproven', { floor: 44 }),
      `signals.engine_unproven.floor: ${lowered}`,
    ],
    [
      'a floor taken away',
      withSignal('engine_unproven', { floor: null }),
      `signals.engine_unproven.floor: ${lowered}`,
    ],
    [
      'a floor of what speaks for people',
      withSignal('natural_typing', { floor: 50 }),
      'signals.natural_typing.floor: null, because it is no risk',
    ],
    [
      'points of context',
      withSignal('velocity_address', { points: 5 }),
      'signals.velocity_address.points: 0, because context counts nothing',
    ],
    [
      'a signal left out',
      { ...standardModel, signals: { ...others, lone_click } },
      'signals.webdriver_detected: to be there, as each signal of this release',
    ],
    [
      'a signal of its own',
      withSignal('constructor', lone_click),
      'signals.constructor: a signal of this release',
    ],
    [
      'a bot without confirmation',
      { ...standardModel, caps: { ...standardModel.caps, unconfirmed: 70 } },
      'caps.unconfirmed: 69 at most, below a bot',
    ],
    [
      'less where nothing was seen',
      { ...standardModel, floors: { no_snapshot: 49 } },
      'floors.no_snapshot: 50 at least',
    ],
    [
      'a proof of its own',
      { ...standardModel, proven: ['verified_agent', 'natural_typing'] },
      'proven.1: verified_agent',
    ],
    [
      'the version of another release',
      { ...standardModel, version: '3' },
      'version: 6, as of the standard model, once its changes are in this one',
    ],
  ])('may not have %s', (_, model, problem) => {
    expect(refused(model)).toEqual([problem])
  })

  it('is refused for everything that is wrong with it at once', () => {
    const model = { ...withSignal('lone_click', { role: 'trust' }), floors: { no_snapshot: 0 } }
    expect(refused(model)).toHaveLength(2)
  })

  it('never calls a session human that the standard one keeps by a floor, nor lets a definitive signal go', () => {
    const slugs = Object.keys(standardModel.signals)
    fc.assert(
      fc.property(ownModel(), fc.subarray(slugs), fc.boolean(), (model, signals, hasSnapshot) => {
        expect(refused(model)).toEqual([])
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

it('of another release has the signals of this one', () => {
  const { engine_unproven: _, ...known } = standardModel.signals
  const signals = { ...known, gone: standardModel.signals.engine_unproven }
  expect(storedModel(JSON.stringify({ ...standardModel, signals }))).toEqual(standardModel)
})

/** Any that the checks let pass, with other points. */
function ownModel(): fc.Arbitrary<ScoringModel> {
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
