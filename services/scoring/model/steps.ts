import type { ScoringModel } from './model.ts'
import {
  combinedRisk,
  type Group,
  groupRisks,
  isConfirmed,
  type JudgedSignal,
  modelSignalsOf,
  type ScoreInput,
  scoreOf,
  totalPoints,
} from './score.ts'

type StepKind =
  | 'signal'
  | `${Group}_limit`
  | 'least'
  | 'unconfirmed_cap'
  | 'no_snapshot_floor'
  | 'signal_floor'
  | 'rounding'

interface Step {
  kind: StepKind
  signal: string | null
  /** Value of a limit, cap or floor. */
  bound: number | null
  /** Score after this step. */
  total: number
}

interface ScoreStep extends Step {
  /** Difference to the previous total, rounded to hundredths of a point. */
  change: number
}

export interface ScoreSteps {
  steps: ScoreStep[]
  /** Risk and trust signals that changed nothing, because another signal decides alone. */
  without_effect: string[]
}

/** Explains a score as a list of steps, from 0 to the result of `scoreOf`. */
export function stepsToScore(model: ScoringModel, input: ScoreInput): ScoreSteps {
  const fired = modelSignalsOf(model, input.signals)
  const { risk } = scoreOf(model, input)
  const unrounded = unroundedSteps(fired, { model, hasSnapshot: input.hasSnapshot })
  const isExact = inHundredths(lastOf(unrounded)) === risk
  const steps = withChanges(isExact ? unrounded : [...unrounded, step('rounding', { total: risk })])
  const used = new Set(steps.map(({ signal }) => signal))
  const unused = fired.filter(({ role, slug }) => role !== 'context' && !used.has(slug))
  return { steps, without_effect: unused.map(({ slug }) => slug) }
}

function unroundedSteps(
  fired: JudgedSignal[],
  { model, hasSnapshot }: { model: ScoringModel; hasSnapshot: boolean },
): Step[] {
  const risks = fired.filter(({ role }) => role === 'risk')
  const proven = risks.find(({ slug }) => model.proven.includes(slug))
  if (proven) return [signalStep(proven)]
  const evidence = withCap(withTrust(riskSteps(fired, model), fired, model), risks, model)
  const [definitive] = risks
    .filter(({ strength }) => strength === 'definitive')
    .toSorted((a, b) => b.points - a.points)
  const isDecisive = definitive && definitive.points >= lastOf(evidence)
  return withFloors(
    isDecisive ? [signalStep(definitive)] : evidence,
    risks,
    hasSnapshot ? 0 : model.floors.no_snapshot,
  )
}

const signalStep = ({ slug, points }: JudgedSignal) =>
  step('signal', { signal: slug, total: points })

// Each signal adds its percentage of the remainder to 100, the strongest first. Group limits apply per group.
function riskSteps(fired: JudgedSignal[], { caps }: ScoringModel): Step[] {
  const { weak, habits, others } = groupRisks(fired)
  const withHabits = withSignals(withSignals([], others), habits, {
    group: 'habits',
    max: caps.habits,
  })
  return withSignals(withHabits, weak, { group: 'weak', max: caps.weak })
}

function withSignals(
  previous: Step[],
  signals: JudgedSignal[],
  limit?: { group: Group; max: number },
): Step[] {
  const from = lastOf(previous)
  const totalAt = (chance: number) => from + ((100 - from) * chance) / 100
  const sorted = signals.toSorted((a, b) => b.points - a.points)
  const steps = sorted.map(({ slug }, i) =>
    step('signal', { signal: slug, total: totalAt(combinedRisk(sorted.slice(0, i + 1))) }),
  )
  const isOver = limit !== undefined && combinedRisk(signals) > limit.max
  const limitStep = isOver
    ? [step(`${limit.group}_limit`, { bound: limit.max, total: totalAt(limit.max) })]
    : []
  return [...previous, ...steps, ...limitStep]
}

function withTrust(previous: Step[], fired: JudgedSignal[], { caps }: ScoringModel): Step[] {
  const from = lastOf(previous)
  const trust = fired.filter(({ role }) => role === 'trust')
  const steps = trust.map(({ slug }, i) =>
    step('signal', { signal: slug, total: from - totalPoints(trust.slice(0, i + 1)) }),
  )
  const limitStep =
    totalPoints(trust) > caps.trust
      ? [step('trust_limit', { bound: caps.trust, total: from - caps.trust })]
      : []
  return withMinimum([...previous, ...steps, ...limitStep], 'least', { bound: 0, signal: null })
}

function withCap(previous: Step[], risks: JudgedSignal[], model: ScoringModel): Step[] {
  const bound = model.caps.unconfirmed
  if (lastOf(previous) <= bound || isConfirmed(risks, model)) return previous
  return [...previous, step('unconfirmed_cap', { bound, total: bound })]
}

function withFloors(previous: Step[], risks: JudgedSignal[], noSnapshot: number): Step[] {
  const [signal] = risks.toSorted((a, b) => (b.floor ?? 0) - (a.floor ?? 0))
  return withMinimum(
    withMinimum(previous, 'no_snapshot_floor', { bound: noSnapshot, signal: null }),
    'signal_floor',
    {
      bound: signal?.floor ?? 0,
      signal: signal?.slug ?? null,
    },
  )
}

function withMinimum(
  steps: Step[],
  kind: StepKind,
  { bound, signal }: { bound: number; signal: string | null },
): Step[] {
  return lastOf(steps) >= bound ? steps : [...steps, step(kind, { bound, signal, total: bound })]
}

const lastOf = (steps: Step[]): number => steps.at(-1)?.total ?? 0

function step(kind: StepKind, { total, ...rest }: Partial<Step> & { total: number }): Step {
  return { kind, signal: null, bound: null, ...rest, total }
}

const inHundredths = (value: number): number => Math.round(100 * value) / 100

function withChanges(steps: Step[]): ScoreStep[] {
  const totals = steps.map(({ total }) => inHundredths(total))
  return steps.map((current, i) => {
    const total = totals[i] ?? 0
    return { ...current, total, change: inHundredths(total - (totals[i - 1] ?? 0)) }
  })
}
