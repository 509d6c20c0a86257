import type { Verdict } from '../../../schemas/events.ts'
import { allOf, type Moves, noMoves, totalAfter, totalBefore } from './moves.ts'

/** Fewer marked sessions of either kind than this say nothing about all others. */
export const fewestMarks = 30

/** A share with the bounds of its 95 % interval, and of how many sessions it is. */
export interface Share {
  value: number
  low: number
  high: number
  of: number
}

/** By Wilson's score interval, which stays within 0 and 1 and holds for few sessions, too; null of none. */
export function shareOf(part: number, of: number): Share | null {
  if (of === 0) return null
  const z2 = 1.96 ** 2
  const value = part / of
  const centre = value + z2 / (2 * of)
  const spread = Math.sqrt(z2 * ((value * (1 - value)) / of + z2 / (4 * of ** 2)))
  const bound = (at: number) => Math.min(1, Math.max(0, at / (1 + z2 / of)))
  return { value, low: bound(centre - spread), high: bound(centre + spread), of }
}

/** How well `bot` is decided; null where there are too few marks. A share of nothing is null. */
export type Quality = { precision: Share | null; recall: Share | null } | null

export interface MarkReport {
  positives: number
  negatives: number
  /** Marked as human or legitimate, though they say themselves that they are bots. They count as neither. */
  declared_bots: number
  before: Quality
  after: Quality
  /** Marked as fraud, which people and bots commit. */
  fraud: Moves
}

interface MarkedSession {
  mark: string
  signals: readonly string[]
  before: Verdict
  after: Verdict
}

export function startMarks() {
  const marked = { positive: noMoves(), negative: noMoves(), declared: noMoves(), fraud: noMoves() }

  const add = ({ mark, signals, before, after }: MarkedSession) => {
    marked[kindOf(mark, signals)][before][after]++
  }

  function result(): MarkReport {
    const { positive, negative, declared, fraud } = marked
    const [positives, negatives] = [allOf(positive), allOf(negative)]
    const quality = (hits: number, falseAlarms: number): Quality => {
      if (Math.min(positives, negatives) < fewestMarks) return null
      return { precision: shareOf(hits, hits + falseAlarms), recall: shareOf(hits, positives) }
    }
    return {
      positives,
      negatives,
      declared_bots: allOf(declared),
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
