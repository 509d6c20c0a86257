import type { z } from 'zod'
import { type FieldIssue, invalidFields } from '../../../infra/errors/errors.ts'
import { parseJsonOrUndefined } from '../../../infra/text.ts'
import { type ModelSignal, type ScoringModel, scoringModel, standardModel } from './model.ts'
import { maxScoreBelowBot } from './score.ts'

/**
 * Parses a customer's model. Throws 422 with every problem. The model may weigh evidence differently from the standard
 * model, but can't redefine signals or weaken safeguards: floors and definitive signals can't be lowered, and
 * unconfirmed evidence can't reach the verdict `bot`.
 */
export function parseCustomModel(text: string): ScoringModel {
  const { data, error } = scoringModel.safeParse(parseJsonOrUndefined(text))
  const fields = error
    ? error.issues.flatMap(fieldIssues)
    : brokenRules([...modelRules(data), ...signalRules(data)])
  if (data && fields.length === 0) return data
  throw invalidFields({ fields })
}

function fieldIssues({ path, message, ...issue }: z.core.$ZodIssue): FieldIssue[] {
  const name = path.join('.') || 'model'
  if (issue.code !== 'unrecognized_keys') {
    const isMissing = message.endsWith('received undefined')
    const expected = message.replace(/^.*expected /, '').replace(/, received \w+$/, '')
    return [{ name, issue: isMissing ? 'required' : 'invalid', expected }]
  }
  return issue.keys.map((key) => ({
    name: [...path, key].join('.'),
    issue: 'not_allowed',
    expected: 'no such member',
  }))
}

/** Parses a model from the log. Adds missing signals from the standard model, and drops signals that it lacks. */
export function parseStoredModel(text: string): ScoringModel {
  const model = scoringModel.parse(JSON.parse(text))
  const signals = Object.entries(standardModel.signals).map(([slug, standard]) => [
    slug,
    model.signals[slug] ?? standard,
  ])
  return { ...model, signals: Object.fromEntries(signals) }
}

type Rule = [holds: boolean, name: string, expected: string]

function brokenRules(rules: Rule[]): FieldIssue[] {
  return rules.flatMap(([holds, name, expected]) =>
    holds ? [] : [{ name, issue: 'invalid', expected }],
  )
}

function modelRules({ version, proven, caps, floors }: ScoringModel): Rule[] {
  const { no_snapshot } = standardModel.floors
  const provable = standardModel.proven
  const newest = `${standardModel.version}, after merging the changes of the standard model`
  return [
    [version === standardModel.version, 'version', newest],
    ...proven.map(
      (slug, i): Rule => [provable.includes(slug), `proven.${i}`, provable.join(' or ')],
    ),
    [
      caps.unconfirmed <= maxScoreBelowBot,
      'caps.unconfirmed',
      `at most ${maxScoreBelowBot}, below the verdict bot`,
    ],
    [floors.no_snapshot >= no_snapshot, 'floors.no_snapshot', `at least ${no_snapshot}`],
  ]
}

function signalRules({ signals }: ScoringModel): Rule[] {
  const isKnown = (slug: string) => Object.hasOwn(standardModel.signals, slug)
  const unknown = Object.keys(signals).filter((slug) => !isKnown(slug))
  return [
    ...unknown.map((slug): Rule => [false, `signals.${slug}`, 'a signal of this release']),
    ...Object.entries(standardModel.signals).flatMap(([slug, standard]) => {
      const signal = signals[slug]
      const missing: Rule = [false, `signals.${slug}`, 'present, like every signal of this release']
      return signal ? rulesFor(slug, signal, standard) : [missing]
    }),
  ]
}

function rulesFor(slug: string, signal: ModelSignal, standard: ModelSignal): Rule[] {
  const at = (member: keyof ModelSignal) => `signals.${slug}.${member}`
  const kinds = ['role', 'category', 'channel', 'strength'] as const
  const { points, floor, strength, role } = standard
  return [
    ...kinds.map((kind): Rule => [signal[kind] === standard[kind], at(kind), standard[kind]]),
    [strength !== 'definitive' || signal.points >= points, at('points'), `at least ${points}`],
    [role !== 'context' || signal.points === 0, at('points'), '0 for context signals'],
    [role === 'risk' || signal.floor === null, at('floor'), 'null unless the role is risk'],
    [(signal.floor ?? 0) >= (floor ?? 0), at('floor'), `at least ${floor}`],
  ]
}
