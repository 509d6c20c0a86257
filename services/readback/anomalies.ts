import {
  type MatchCount,
  matchIntervalMs,
  type WatchedValue,
} from '../../projections/sessions/anomaly-counts.ts'
import { hourMs } from '../../projections/sessions/hours.ts'
import { excessOf, maxFineMs, type PeriodComparison, type Rise, sum } from './rises.ts'

const minOverlap = 0.8
const maxAnomalies = 5

export interface Anomaly extends Pick<Rise, 'sessions' | 'bots' | 'expected' | 'lift'> {
  /** Values that the sessions have in common, most characteristic first. */
  values: (WatchedValue & { sessions: number })[]
  /** Share of the value among bots, divided by its share among other sessions. */
  botLift: number
  /** Time of the first session above expectation. */
  startedAt: number
  /** End of the last five minutes above expectation. */
  endedAt: number
  series: { at: number; sessions: number; expected: number }[]
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
  const { rises, matches } = evidence
  const members = group.flatMap((index) => {
    const rise = rises[index]
    return rise ? [{ ...rise, index }] : []
  })
  const maxExcess = Math.max(...members.map(excessOf))
  const [lead] = members
    .filter((member) => excessOf(member) >= minOverlap * maxExcess)
    .toSorted((a, b) => b.lift - a.lift)
  if (!lead) return undefined
  const { index, sessions, bots, expected, lift } = lead
  const shared = members
    .map(({ field, value, index: i }) => ({ field, value, sessions: countBoth(matches, index, i) }))
    .toSorted((a, b) => b.sessions - a.sessions)
  const path = shared.some(({ field }) => field === 'page_path') ? [] : pathOf(index, lead, matches)
  return {
    sessions,
    bots,
    expected,
    lift,
    values: [...shared, ...path],
    botLift: botLiftOf(lead),
    ...timesOf(index, lead, evidence),
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

function botLiftOf({ sessions, bots, total }: Rise): number {
  const others = (sessions - bots + 1) / (total.sessions - total.bots + 2)
  return (bots + 1) / (total.bots + 2) / others
}

/** Returns the sessions over time, and when they began to exceed the expectation for good, and ceased to. */
function timesOf(index: number, rise: Rise, { comparison, matches }: Evidence) {
  const own = matches.flatMap((match) =>
    match.at !== null && match.matched.includes(index) ? [{ ...match, at: match.at }] : [],
  )
  const begin = rise.since - (rise.since % matchIntervalMs)
  const length = Math.ceil((rise.until - begin) / matchIntervalMs)
  const intervals = Array.from({ length }, (_, i) => {
    const at = begin + i * matchIntervalMs
    const found = own.filter((match) => match.at === at)
    return {
      at,
      sessions: sum(found.map(({ sessions }) => sessions)),
      expected: expectedAt(at, rise, comparison),
      first: Math.min(...found.map(({ first }) => first)),
    }
  })
  const last = intervals[length - 1 - climbStart(intervals.toReversed())]?.at ?? rise.until
  return {
    startedAt: intervals[climbStart(intervals)]?.first ?? rise.since,
    endedAt: Math.min(rise.until, last + matchIntervalMs),
    series:
      comparison.until - comparison.since > maxFineMs
        ? hourlySeries(rise, comparison)
        : intervals.map(({ at, sessions, expected }) => ({ at, sessions, expected })),
  }
}

const hourlySeries = ({ counts, usual }: Rise, { since }: PeriodComparison) =>
  counts.map((sessions, slot) => ({
    at: since - (since % hourMs) + slot * hourMs,
    sessions,
    expected: usual[slot] ?? 0,
  }))

/** Returns where the largest climb above expectation begins, without as many sessions as noise may have before it. */
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
    .findLastIndex((total) => climb.peak - total >= climb.height - Math.sqrt(climb.height))
}

/** Returns the expected sessions of an interval, as its part of the hour. */
function expectedAt(at: number, { usual }: Rise, { since, until }: PeriodComparison): number {
  const slot = Math.floor(at / hourMs) - Math.floor(since / hourMs)
  const hour = at - (at % hourMs)
  const compared = Math.min(until, hour + hourMs) - Math.max(since, hour)
  const counted = Math.min(until, at + matchIntervalMs) - Math.max(since, at)
  return ((usual[slot] ?? 0) * counted) / compared
}
