import {
  type MatchCount,
  matchIntervalMs,
  type WatchedCount,
  type WatchedValue,
} from '../../projections/sessions/anomaly-counts.ts'
import { hourMs } from '../../projections/sessions/hours.ts'

/** Values with fewer sessions are never anomalous, and neither is anything if the baseline has fewer. */
export const minSessions = 50
const minLift = 3
// Added to both counts, so that a value without sessions before has a finite lift.
const smoothing = 10
const minOverlap = 0.8
const maxAnomalies = 5
// The values of one attack overlap, so more of a field would not make more anomalies.
const maxPerField = 4

export interface PeriodComparison {
  since: number
  until: number
  sessions: number
  bots: number
  /** Number of days of the baseline. */
  days: number
  /** Sessions of all days by hour of the period. The hours begin in UTC. */
  baseline: number[]
  values: (WatchedCount & { baseline: number[] })[]
}

/** Value with far more sessions than before. */
interface Rise extends WatchedCount {
  baseline: number[]
  /** Sessions that the other sessions of the period let expect. */
  expected: number
  /** Share of the value divided by its share in the baseline, smoothed. */
  lift: number
}

export interface Anomaly extends Omit<Rise, 'baseline' | 'field' | 'value'> {
  /** Values that the sessions have in common, most characteristic first. */
  values: (WatchedValue & { sessions: number })[]
  /** Share of the value among bots, divided by its share among other sessions. */
  botLift: number
  /** Time of the first session above expectation. */
  startedAt: number
  series: { at: number; sessions: number; expected: number }[]
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)

const excessOf = ({ sessions, expected }: Rise) => sessions - expected

/**
 * Returns the values that have at least three times their share of the baseline, largest excess first. A share of the
 * baseline is taken at its upper estimate, so that a small baseline does not make rises.
 */
export function findRises({ sessions, days, baseline, values }: PeriodComparison): Rise[] {
  const baselineSessions = sum(baseline)
  if (days === 0 || baselineSessions < minSessions) return []
  const rises = values.map((count): Rise => {
    const before = sum(count.baseline)
    const share = Math.min(1, (before + Math.sqrt(before + 1)) / baselineSessions)
    // The share of a value also rises where others have fallen, so its number must have risen, too.
    const sameShare = Math.max(share * sessions, before / days)
    // Additional sessions also raise the total, so the expectation applies to the others.
    const usual = share < 1 ? (share * (sessions - count.sessions)) / (1 - share) : sameShare
    const expected = Math.min(sameShare, Math.max(usual, before / days))
    return { ...count, expected, lift: (count.sessions + smoothing) / (sameShare + smoothing) }
  })
  const bySize = rises
    .filter((rise) => rise.sessions >= minSessions && rise.lift >= minLift)
    .toSorted((a, b) => excessOf(b) - excessOf(a) || b.lift - a.lift)
  return bySize.filter(
    ({ field }, i) =>
      bySize.slice(0, i).filter((rise) => rise.field === field).length < maxPerField,
  )
}

/**
 * Groups the rises that the same sessions cause: those that share 80% of the smaller excess with the largest rise of a
 * group. Every rise is in exactly one group. `matches` has the sessions by indexes of `rises`.
 */
export function groupRises(rises: readonly Rise[], matches: readonly MatchCount[]): number[][] {
  const groups: [number, ...number[]][] = []
  for (const [i, rise] of rises.entries()) {
    const group = groups.find(([largest]) => {
      const seed = rises[largest] ?? rise
      return countBoth(matches, i, largest) >= minOverlap * Math.min(excessOf(rise), excessOf(seed))
    })
    if (group) group.push(i)
    else groups.push([i])
  }
  return groups
}

const countBoth = (matches: readonly MatchCount[], a: number, b: number) =>
  sum(
    matches
      .filter(({ at, matched }) => at !== null && matched.includes(a) && matched.includes(b))
      .map(({ sessions }) => sessions),
  )

/** Returns at most five anomalies, highest lift first. */
export function decideAnomalies(
  comparison: PeriodComparison,
  rises: readonly Rise[],
  matches: readonly MatchCount[],
): Anomaly[] {
  return groupRises(rises, matches)
    .map((group) => describeGroup(group, { comparison, rises, matches }))
    .filter((anomaly) => anomaly !== undefined)
    .toSorted((a, b) => b.lift - a.lift)
    .slice(0, maxAnomalies)
}

interface Evidence {
  comparison: PeriodComparison
  rises: readonly Rise[]
  matches: readonly MatchCount[]
}

function describeGroup(group: number[], evidence: Evidence): Anomaly | undefined {
  const { comparison, rises, matches } = evidence
  const members = group.flatMap((index) => {
    const rise = rises[index]
    return rise ? [{ ...rise, index }] : []
  })
  const maxExcess = Math.max(...members.map(excessOf))
  const [lead] = members
    .filter((member) => excessOf(member) >= minOverlap * maxExcess)
    .toSorted((a, b) => b.lift - a.lift)
  if (!lead) return undefined
  const { index, baseline, field: _, value: __, ...counts } = lead
  const shared = members
    .map(({ field, value, index: i }) => ({ field, value, sessions: countBoth(matches, index, i) }))
    .toSorted((a, b) => b.sessions - a.sessions)
  const path = shared.some(({ field }) => field === 'page_path') ? [] : pathOf(index, lead, matches)
  return {
    ...counts,
    values: [...shared, ...path],
    botLift: botLiftOf(lead, comparison),
    ...seriesOf(index, lead, evidence),
  }
}

/** Returns the path of nearly all sessions with the value. A busy path hardly rises, but still says where they are. */
function pathOf(index: number, { sessions }: Rise, matches: readonly MatchCount[]) {
  const counts = new Map<string, number>()
  for (const match of matches)
    if (match.at === null && match.path !== null && match.matched.includes(index))
      counts.set(match.path, (counts.get(match.path) ?? 0) + match.sessions)
  return [...counts]
    .filter(([, count]) => count >= minOverlap * sessions)
    .map(([value, count]) => ({ field: 'page_path' as const, value, sessions: count }))
}

function botLiftOf({ sessions, bots }: Rise, total: PeriodComparison): number {
  const others = (sessions - bots + 1) / (total.sessions - total.bots + 2)
  return (bots + 1) / (total.bots + 2) / others
}

/** Returns the sessions over time, and when they began to exceed the expectation for good. */
function seriesOf(index: number, rise: Rise, { comparison, matches }: Evidence) {
  const { since, until } = comparison
  const own = matches.flatMap((match) =>
    match.at !== null && match.matched.includes(index) ? [{ ...match, at: match.at }] : [],
  )
  const begin = since - (since % matchIntervalMs)
  const intervals = Array.from({ length: Math.ceil((until - begin) / matchIntervalMs) }, (_, i) => {
    const at = begin + i * matchIntervalMs
    const found = own.filter((match) => match.at === at)
    return {
      at,
      sessions: sum(found.map(({ sessions }) => sessions)),
      expected: expectedAt(at, rise, comparison),
      first: Math.min(...found.map(({ first }) => first)),
    }
  })
  const startedAt = intervals[climbStart(intervals)]?.first ?? since
  const length = until - since > 3 * hourMs ? hourMs : matchIntervalMs
  const slots = Map.groupBy(intervals, ({ at }) => at - (at % length))
  const series = [...slots].map(([at, slot]) => ({
    at,
    sessions: sum(slot.map(({ sessions }) => sessions)),
    expected: sum(slot.map(({ expected }) => expected)),
  }))
  return { startedAt, series }
}

/** Returns where 95% of the largest climb above expectation begins, which leaves out noise before it. */
function climbStart(intervals: readonly { sessions: number; expected: number }[]): number {
  const sums = [0]
  const climb = { height: 0, peak: 0, end: 0 }
  let lowest = 0
  for (const { sessions, expected } of intervals) {
    const peak = (sums.at(-1) ?? 0) + sessions - expected
    const height = peak - lowest
    if (height > climb.height) Object.assign(climb, { height, peak, end: sums.length })
    lowest = Math.min(lowest, peak)
    sums.push(peak)
  }
  return sums
    .slice(0, climb.end)
    .findLastIndex((total) => climb.peak - total >= 0.95 * climb.height)
}

/** Returns the expected sessions of an interval: those of the period, distributed like the baseline. */
function expectedAt(
  at: number,
  { expected, baseline }: Rise,
  comparison: PeriodComparison,
): number {
  const { since, until } = comparison
  const slot = Math.floor(at / hourMs) - Math.floor(since / hourMs)
  const own = sum(baseline)
  const [part, whole] =
    own > 0
      ? [baseline[slot] ?? 0, own]
      : [comparison.baseline[slot] ?? 0, sum(comparison.baseline)]
  const hour = at - (at % hourMs)
  const compared = Math.min(until, hour + hourMs) - Math.max(since, hour)
  const counted = Math.min(until, at + matchIntervalMs) - Math.max(since, at)
  return (expected * part * counted) / (whole * compared)
}
