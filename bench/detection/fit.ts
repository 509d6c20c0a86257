import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { type ScoringModel, standardModel } from '../../services/scoring/model/model.ts'
import { scoreOf } from '../../services/scoring/model/score.ts'
import { isJudged, type JudgedRow } from './measures.ts'
import judgedByHand from './priors.json' with { type: 'json' }
import { readResults } from './results.ts'

export type Points = Record<string, number>

/** Allowed points per strength, so that a strong signal never decides alone and a weak one stays weak. */
const bounds = { weak: [2, 16], moderate: [10, 38], strong: [40, 68] } as const

const priors: Points = judgedByHand
const fitted = Object.entries(standardModel.signals).flatMap(
  ([slug, { role, strength, points }]) =>
    role === 'risk' && strength !== 'definitive'
      ? [{ slug, strength, prior: priors[slug] ?? points }]
      : [],
)

/** Converts points, as independent probabilities, to weights that add up. */
const weightOf = (points: number) => -Math.log(1 - points / 100)
const pointsOf = (weight: number) => Math.round(100 * (1 - Math.exp(-weight)))

/** Score, 0 to 1, of a session without signals. */
const base = 0.02
/** Penalty for moving a weight away from its manual value, so that a few cases move it only a little. */
const stiffness = 0.03
const steps = 2000
const rate = 0.02

interface Sample {
  slugs: string[]
  isBot: boolean
  weight: number
}

/**
 * Fits points by noisy-or regression (Pearl, 1988): the probability of a bot is 1 - exp(-sum of the fired weights).
 * Weights stay within the bounds of their strength. People and bots have the same total weight.
 */
export function fitPoints(rows: readonly JudgedRow[]): Points {
  const samples = samplesOf(rows)
  const prior = new Map(fitted.map(({ slug, prior }) => [slug, weightOf(prior)]))
  const weights = new Map(prior)
  for (let step = 0; step < steps; step++) {
    const slope = slopeOf(samples, weights)
    for (const { slug, strength } of fitted) {
      const from = prior.get(slug) ?? 0
      const here = weights.get(slug) ?? 0
      const pull = (2 * stiffness * (here - from)) / (from + 0.05)
      const [least, most] = bounds[strength]
      const next = here - rate * ((slope.get(slug) ?? 0) + pull)
      weights.set(slug, Math.min(weightOf(most), Math.max(weightOf(least), next)))
    }
  }
  return Object.fromEntries(fitted.map(({ slug }) => [slug, pointsOf(weights.get(slug) ?? 0)]))
}

/**
 * Returns the samples to fit. Excludes sessions decided by a definitive signal, which say nothing about others, and
 * forgeries that equal people in every signal.
 */
function samplesOf(rows: readonly JudgedRow[]): Sample[] {
  const open = rows.filter(
    ({ kind, signals_fired, isFresh }) =>
      !/^(informed|forger)/.test(kind) &&
      !isFresh &&
      signals_fired.every(({ strength }) => strength !== 'definitive'),
  )
  const people = open.filter(({ kind }) => kind === 'person').length
  return open.map(({ kind, signals_fired }) => {
    const isBot = kind !== 'person'
    const alike = isBot ? open.length - people : people
    return {
      isBot,
      weight: open.length / (2 * alike),
      slugs: signals_fired.map(({ signal }) => signal),
    }
  })
}

function slopeOf(samples: Sample[], weights: ReadonlyMap<string, number>): Map<string, number> {
  const slope = new Map<string, number>()
  for (const { slugs, isBot, weight } of samples) {
    const sum = slugs.reduce((total, slug) => total + (weights.get(slug) ?? 0), base)
    const each = weight * (isBot ? -Math.exp(-sum) / (1 - Math.exp(-sum)) : 1)
    for (const slug of slugs) slope.set(slug, (slope.get(slug) ?? 0) + each / samples.length)
  }
  return slope
}

/** Returns the standard model with other points. */
function modelWith(points: Points): ScoringModel {
  const signals = Object.entries(standardModel.signals).map(([slug, signal]) => [
    slug,
    { ...signal, points: points[slug] ?? signal.points },
  ])
  return { ...standardModel, signals: Object.fromEntries(signals) }
}

/** Cross-validates: judges each row by weights fitted without its framework or, for people, without their browser. */
export function leftOut(rows: readonly JudgedRow[]): JudgedRow[] {
  const groupOf = ({ kind, family, framework }: JudgedRow) =>
    kind === 'person' ? `people ${family}` : framework
  return [...Map.groupBy(rows, groupOf)].flatMap(([group, own]) => {
    const model = modelWith(fitPoints(rows.filter((row) => groupOf(row) !== group)))
    return own.map((row) => {
      const signals = row.signals_fired.map(({ signal }) => signal)
      const { risk, verdict } = scoreOf(model, { signals, hasSnapshot: true })
      return { ...row, score: risk, verdict }
    })
  })
}

const file = path.resolve(import.meta.dirname, '../../services/scoring/model/model.json')

// Writes one line per signal, for readable diffs.
function textOf(model: ScoringModel): string {
  const lines = (value: object) =>
    Object.entries(value).map(
      ([name, member]) => `${JSON.stringify(name)}: ${JSON.stringify(member)}`,
    )
  const signals = `{\n${lines(model.signals).join(',\n')}\n}`
  const members = lines({ ...model, signals: null }).map((line) =>
    line.replace('"signals": null', `"signals": ${signals}`),
  )
  return `{\n${members.join(',\n')}\n}\n`
}

if (import.meta.main) {
  const rows = ((await readResults())?.rows ?? []).filter(isJudged)
  const points = fitPoints(rows)
  writeFileSync(file, textOf(modelWith(points)))
  const moved = fitted.filter(({ slug, prior }) => points[slug] !== prior)
  console.table(
    moved.map(({ slug, strength, prior }) => ({ slug, strength, prior, fitted: points[slug] })),
  )
}
