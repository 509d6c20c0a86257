import type { WatchedValue } from '../../projections/sessions/anomaly-counts.ts'
import type { TimeRange } from '../../projections/sessions/count-groups.ts'
import { hourMs } from '../../projections/sessions/hours.ts'

/** Values with fewer sessions are never anomalous, and neither is anything if the baseline has fewer. */
export const minSessions = 50
const minLift = 3
// Crawlers and batch jobs come at other hours each day, so hours must also stand out from the busiest hour of a day.
const minPeakLift = 2
// Added to both counts, so that a value without sessions before has a finite lift.
const smoothing = 10
// The values of one attack overlap, so more of a field would not make more anomalies.
const maxPerField = 4
/** Longest period that is only compared as a whole, with a series of five minutes instead of hours. */
export const maxFineMs = 3 * hourMs

/** Sessions by hour of the period. The hours begin in UTC. */
interface HourlyCounts {
  sessions: number[]
  /** Sessions with the verdict `bot`. */
  bots: number[]
  /** Sessions in the same hours of all days before. */
  baseline: number[]
}

interface ValueCounts extends WatchedValue, HourlyCounts {
  /** Sessions in the busiest hour of a day before, on average. */
  peak: number
}

export interface PeriodComparison extends HourlyCounts, TimeRange {
  /** Number of days of the baseline. */
  days: number
  values: ValueCounts[]
}

/** Hours in which a value has far more sessions than before. */
export interface Rise extends WatchedValue, TimeRange {
  sessions: number
  bots: number
  /** Sessions of all values. */
  total: { sessions: number; bots: number }
  /** Sessions that the other sessions let expect. */
  expected: number
  /** Share of the value divided by its share in the baseline, smoothed. */
  lift: number
  /** Sessions and expected ones by hour of the whole period. */
  counts: number[]
  usual: number[]
}

export const sum = (numbers: readonly number[]): number =>
  numbers.reduce((total, number) => total + number, 0)

export const excessOf = ({ sessions, expected }: Rise): number => sessions - expected

/**
 * Returns the values that have at least three times their share of the baseline, in the period or in some of its
 * hours, largest excess first.
 */
export function findRises(comparison: PeriodComparison): Rise[] {
  if (comparison.days === 0) return []
  const bySize = comparison.values
    .flatMap((value) => risesOf(value, comparison))
    .toSorted((a, b) => excessOf(b) - excessOf(a) || b.lift - a.lift)
  return bySize.filter(
    ({ field }, i) =>
      bySize.slice(0, i).filter((rise) => rise.field === field).length < maxPerField,
  )
}

function risesOf(value: ValueCounts, comparison: PeriodComparison): Rise[] {
  const { since, until, days } = comparison
  const [count, countBefore] = [running(value.sessions), running(value.baseline)]
  const [countAll, countAllBefore] = [running(comparison.sessions), running(comparison.baseline)]
  const length = comparison.sessions.length
  const [inPeriod, before] = [count(0, length), countBefore(0, length)]

  function compare(from: number, to: number) {
    const [sessions, baseline] = [count(from, to), countBefore(from, to)]
    const [all, allBefore] = [countAll(from, to), countAllBefore(from, to)]
    // Upper estimate, so that a small baseline does not make rises.
    const share = Math.min(1, (baseline + Math.sqrt(baseline + 1)) / allBefore)
    // The share of a value also rises where others have fallen, so its number must have risen, too.
    const sameShare = Math.max(share * all, baseline / days)
    // Additional sessions also raise the total, so the expectation applies to the others.
    const ofOthers = share < 1 ? (share * (all - sessions)) / (1 - share) : sameShare
    const expected = Math.min(sameShare, Math.max(ofOthers, baseline / days))
    const lift = (sessions + smoothing) / (sameShare + smoothing)
    // A value that has more sessions all day has higher peaks, too.
    const growth = (inPeriod - sessions + smoothing) / ((before - baseline) / days + smoothing)
    const usualPeak = Math.max(1, growth) * Math.min(value.peak * (to - from), before / days)
    const isRise =
      Math.min(sessions, allBefore) >= minSessions &&
      lift >= minLift &&
      sessions >= (minPeakLift + 1 / days) * usualPeak
    // Counts a session more per hour, so that hours of a rare value do not extend a run.
    const surplus = sessions - minLift * (sameShare + to - from)
    return { from, to, sessions, expected, lift, isRise, surplus }
  }

  /** Finds the run of hours with the most sessions above three times the usual, then others before and after it. */
  function search(begin: number, end: number): ReturnType<typeof compare>[] {
    let best: ReturnType<typeof compare> | undefined
    for (let from = begin; from < end; from++)
      for (let to = from + 1; to <= end; to++) {
        const run = compare(from, to)
        if (run.isRise && run.surplus > (best?.surplus ?? -Infinity)) best = run
      }
    // The hours beside it may have the first and last of the same sessions.
    return best ? [best, ...search(begin, best.from - 1), ...search(best.to + 1, end)] : []
  }

  const whole = compare(0, length)
  const runs = until - since > maxFineMs ? search(0, length) : whole.isRise ? [whole] : []
  const start = since - (since % hourMs)
  const weights = before > 0 ? value.baseline : comparison.baseline
  return runs.map(({ from, to, sessions, expected, lift }) => ({
    field: value.field,
    value: value.value,
    since: Math.max(since, start + from * hourMs),
    until: Math.min(until, start + to * hourMs),
    sessions,
    bots: sum(value.bots.slice(from, to)),
    total: { sessions: countAll(from, to), bots: sum(comparison.bots.slice(from, to)) },
    expected,
    lift,
    counts: value.sessions,
    usual: weights.map((weight) => (whole.expected * weight) / sum(weights)),
  }))
}

/** Returns a function that sums the numbers of a range. */
function running(numbers: readonly number[]) {
  const sums = [0]
  for (const number of numbers) sums.push((sums.at(-1) ?? 0) + number)
  return (from: number, to: number) => (sums[to] ?? 0) - (sums[from] ?? 0)
}
