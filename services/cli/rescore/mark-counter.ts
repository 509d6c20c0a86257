import type { Verdict } from '../../../schemas/events.ts'
import { countAll, emptyMoves, type Moves, totalAfter, totalBefore } from './moves.ts'

/** Minimum number of positives and of negatives for meaningful precision and recall. */
export const minMarks = 30

/** Fraction of `of` sessions, with the bounds of its 95 % confidence interval. */
export interface Share {
  value: number
  low: number
  high: number
  of: number
}

/** Returns the fraction with its Wilson score interval, which suits small samples. Returns null if `of` is 0. */
export function shareOf(part: number, of: number): Share | null {
  if (of === 0) return null
  const z2 = 1.96 ** 2
  const value = part / of
  const center = value + z2 / (2 * of)
  const spread = Math.sqrt(z2 * ((value * (1 - value)) / of + z2 / (4 * of ** 2)))
  const bound = (edge: number) => Math.min(1, Math.max(0, edge / (1 + z2 / of)))
  return { value, low: bound(center - spread), high: bound(center + spread), of }
}

/** Precision and recall of the verdict `bot`, each null if its denominator is 0. Null if there are too few labels. */
export type Quality = { precision: Share | null; recall: Share | null } | null

export interface MarkReport {
  positives: number
  negatives: number
  /** Sessions labeled human or legitimate that declare themselves as bots. Not counted in `negatives`. */
  declared_bots: number
  before: Quality
  after: Quality
  /** Sessions labeled as fraud. Not counted as bots, because people commit fraud, too. */
  fraud: Moves
}

interface MarkedSession {
  mark: string
  signals: readonly string[]
  before: Verdict
  after: Verdict
}

/** Creates a counter that compares verdicts with the labels (marks) of sessions. */
export function createMarkCounter() {
  const movesByKind = {
    positive: emptyMoves(),
    negative: emptyMoves(),
    declared: emptyMoves(),
    fraud: emptyMoves(),
  }

  const add = ({ mark, signals, before, after }: MarkedSession) => {
    movesByKind[kindOf(mark, signals)][before][after]++
  }

  function result(): MarkReport {
    const { positive, negative, declared, fraud } = movesByKind
    const [positives, negatives] = [countAll(positive), countAll(negative)]
    const quality = (hits: number, falseAlarms: number): Quality => {
      if (Math.min(positives, negatives) < minMarks) return null
      return { precision: shareOf(hits, hits + falseAlarms), recall: shareOf(hits, positives) }
    }
    return {
      positives,
      negatives,
      declared_bots: countAll(declared),
      fraud,
      before: quality(totalBefore(positive, 'bot'), totalBefore(negative, 'bot')),
      after: quality(totalAfter(positive, 'bot'), totalAfter(negative, 'bot')),
    }
  }
  return { add, result }
}

function kindOf(mark: string, signals: readonly string[]) {
  if (mark === 'bot') return 'positive'
  if (mark === 'fraud') return 'fraud'
  return signals.includes('declared_bot_user_agent') ? 'declared' : 'negative'
}
