import type { ScoringModel } from './model.ts'
import {
  addedUp,
  chanceOf,
  type Group,
  isConfirmed,
  type JudgedSignal,
  judgedIn,
  type Scored,
  scoreOf,
  sum,
} from './score.ts'

type StepKind =
  | 'signal'
  | `${Group}_limit`
  | 'least'
  | 'unconfirmed_cap'
  | 'no_snapshot_floor'
  | 'signal_floor'
  | 'rounding'

interface Reached {
  kind: StepKind
  signal: string | null
  /** Of a limit, cap or floor. */
  bound: number | null
  /** The score from then on. */
  total: number
}

/** `change` is what it adds to the total of the step before, in hundredths of a point. */
interface ScoreStep extends Reached {
  change: number
}

export interface ScoreSteps {
  steps: ScoreStep[]
  /** Signals that are no context and yet changed nothing, because another one decides alone. */
  without_effect: string[]
}

/** How a score comes about, one step after the other, from 0 to what `scoreOf` says. */
export function stepsToScore(model: ScoringModel, scored: Scored): ScoreSteps {
  const fired = judgedIn(model, scored.signals)
  const { risk } = scoreOf(model, scored)
  const reached = reachedBy(fired, { model, hasSnapshot: scored.hasSnapshot })
  const isWhole = inHundredths(lastOf(reached)) === risk
  const steps = withChanges(isWhole ? reached : [...reached, step('rounding', { total: risk })])
  const named = new Set(steps.map(({ signal }) => signal))
  const idle = fired.filter(({ role, slug }) => role !== 'context' && !named.has(slug))
  return { steps, without_effect: idle.map(({ slug }) => slug) }
}

function reachedBy(
  fired: JudgedSignal[],
  { model, hasSnapshot }: { model: ScoringModel; hasSnapshot: boolean },
): Reached[] {
  const risks = fired.filter(({ role }) => role === 'risk')
  const proven = risks.find(({ slug }) => model.proven.includes(slug))
  if (proven) return [decidedBy(proven)]
  const evidence = capped(withTrust(added(fired, model), fired, model), risks, model)
  const [definitive] = risks
    .filter(({ strength }) => strength === 'definitive')
    .toSorted((one, other) => other.points - one.points)
  const decides = definitive && definitive.points >= lastOf(evidence)
  return withFloors(
    decides ? [decidedBy(definitive)] : evidence,
    risks,
    hasSnapshot ? 0 : model.floors.no_snapshot,
  )
}

const decidedBy = ({ slug, points }: JudgedSignal) =>
  step('signal', { signal: slug, total: points })

// Each takes its share of what is left to 100, those of a group within the group, the strongest first.
function added(fired: JudgedSignal[], { caps }: ScoringModel): Reached[] {
  const { weak, habits, others } = addedUp(fired)
  const steps = together([], others)
  return together(together(steps, habits, { group: 'habits', most: caps.habits }), weak, {
    group: 'weak',
    most: caps.weak,
  })
}

function together(
  before: Reached[],
  signals: JudgedSignal[],
  limit?: { group: Group; most: number },
): Reached[] {
  const from = lastOf(before)
  const totalAt = (chance: number) => from + ((100 - from) * chance) / 100
  const sorted = signals.toSorted((one, other) => other.points - one.points)
  const steps = sorted.map(({ slug }, i) =>
    step('signal', { signal: slug, total: totalAt(chanceOf(sorted.slice(0, i + 1))) }),
  )
  const isOver = limit !== undefined && chanceOf(signals) > limit.most
  const most = isOver
    ? [step(`${limit.group}_limit`, { bound: limit.most, total: totalAt(limit.most) })]
    : []
  return [...before, ...steps, ...most]
}

function withTrust(before: Reached[], fired: JudgedSignal[], { caps }: ScoringModel): Reached[] {
  const from = lastOf(before)
  const trust = fired.filter(({ role }) => role === 'trust')
  const steps = trust.map(({ slug }, i) =>
    step('signal', { signal: slug, total: from - sum(trust.slice(0, i + 1)) }),
  )
  const limit =
    sum(trust) > caps.trust
      ? [step('trust_limit', { bound: caps.trust, total: from - caps.trust })]
      : []
  return atLeast([...before, ...steps, ...limit], 'least', { bound: 0, signal: null })
}

function capped(before: Reached[], risks: JudgedSignal[], model: ScoringModel): Reached[] {
  const bound = model.caps.unconfirmed
  if (lastOf(before) <= bound || isConfirmed(risks, model)) return before
  return [...before, step('unconfirmed_cap', { bound, total: bound })]
}

function withFloors(before: Reached[], risks: JudgedSignal[], noSnapshot: number): Reached[] {
  const [signal] = risks.toSorted((one, other) => (other.floor ?? 0) - (one.floor ?? 0))
  return atLeast(
    atLeast(before, 'no_snapshot_floor', { bound: noSnapshot, signal: null }),
    'signal_floor',
    {
      bound: signal?.floor ?? 0,
      signal: signal?.slug ?? null,
    },
  )
}

function atLeast(
  before: Reached[],
  kind: StepKind,
  { bound, signal }: { bound: number; signal: string | null },
): Reached[] {
  return lastOf(before) >= bound ? before : [...before, step(kind, { bound, signal, total: bound })]
}

const lastOf = (steps: Reached[]): number => steps.at(-1)?.total ?? 0

function step(kind: StepKind, { total, ...rest }: Partial<Reached> & { total: number }): Reached {
  return { kind, signal: null, bound: null, ...rest, total }
}

const inHundredths = (value: number): number => Math.round(100 * value) / 100

function withChanges(reached: Reached[]): ScoreStep[] {
  const totals = reached.map(({ total }) => inHundredths(total))
  return reached.map((one, i) => {
    const total = totals[i] ?? 0
    return { ...one, total, change: inHundredths(total - (totals[i - 1] ?? 0)) }
  })
}
