import type { z } from 'zod'
import { type FieldIssue, invalidFields } from '../../../infra/errors/errors.ts'
import { parsedJson } from '../../../infra/text.ts'
import { type ModelSignal, type ScoringModel, scoringModel, standardModel } from './model.ts'
import { belowBot } from './score.ts'

/**
 * A customer's own model from the text of its file; 422 naming everything that is wrong with it. It may count evidence
 * otherwise than the standard model. What a signal is stays as it is, and what protects cannot be taken away: floors and
 * definitive signals are not lowered, and what nothing confirms is no bot.
 */
export function parseModel(text: string): ScoringModel {
  const { data, error } = scoringModel.safeParse(parsedJson(text))
  const fields = error
    ? error.issues.flatMap(fieldIssues)
    : broken([...rulesOf(data), ...signalRules(data)])
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

/**
 * As the log has it, and complete for this release: what it does not know, because the model was made for an earlier one,
 * is as in the standard model, and a signal that this release does not have is left out.
 */
export function storedModel(text: string): ScoringModel {
  const own = scoringModel.parse(JSON.parse(text))
  const signals = Object.entries(standardModel.signals).map(([slug, standard]) => [
    slug,
    own.signals[slug] ?? standard,
  ])
  return { ...own, signals: Object.fromEntries(signals) }
}

type Rule = [holds: boolean, name: string, expected: string]

function broken(rules: Rule[]): FieldIssue[] {
  return rules.flatMap(([holds, name, expected]) =>
    holds ? [] : [{ name, issue: 'invalid', expected }],
  )
}

function rulesOf({ version, proven, caps, floors }: ScoringModel): Rule[] {
  const { no_snapshot } = standardModel.floors
  const provable = standardModel.proven
  const newest = `${standardModel.version}, as of the standard model, once its changes are in this one`
  return [
    [version === standardModel.version, 'version', newest],
    ...proven.map(
      (slug, i): Rule => [provable.includes(slug), `proven.${i}`, provable.join(' or ')],
    ),
    [caps.unconfirmed <= belowBot, 'caps.unconfirmed', `${belowBot} at most, below a bot`],
    [floors.no_snapshot >= no_snapshot, 'floors.no_snapshot', `${no_snapshot} at least`],
  ]
}

function signalRules({ signals }: ScoringModel): Rule[] {
  const isKnown = (slug: string) => Object.hasOwn(standardModel.signals, slug)
  const unknown = Object.keys(signals).filter((slug) => !isKnown(slug))
  return [
    ...unknown.map((slug): Rule => [false, `signals.${slug}`, 'a signal of this release']),
    ...Object.entries(standardModel.signals).flatMap(([slug, standard]) => {
      const signal = signals[slug]
      const missing: Rule = [
        false,
        `signals.${slug}`,
        'to be there, as each signal of this release',
      ]
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
    [strength !== 'definitive' || signal.points >= points, at('points'), `${points} at least`],
    [role !== 'context' || signal.points === 0, at('points'), '0, because context counts nothing'],
    [role === 'risk' || signal.floor === null, at('floor'), 'null, because it is no risk'],
    [(signal.floor ?? 0) >= (floor ?? 0), at('floor'), `${floor} at least`],
  ]
}
