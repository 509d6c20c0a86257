import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import type { TimeSpan } from '../shared/span.ts'

const day = 86_400_000

/** Shifts a period back by whole days until it doesn't overlap, so that both cover the same times of day. */
export function previousPeriod({ since, until }: TimeSpan): TimeSpan {
  const shift = Math.ceil((until - since) / day) * day
  return { since: since - shift, until: until - shift, last: undefined }
}

type Groups = SessionAggregates['groups']

/** Returns the number of sessions in the groups with these values. */
export const sumSessions = (groups: Groups, wanted: Record<string, string>): number =>
  groups
    .filter(({ values }) =>
      Object.entries(values).every(([name, value]) => (wanted[name] ?? value) === value),
    )
    .reduce((sum, { kind, sessions }) => sum + (kind === 'value' ? sessions : 0), 0)

export interface Amount {
  /** null = not counted. */
  part: number | null
  /** Present for a share. */
  whole?: number
}

const comparableOf = ({ part, whole }: Amount) =>
  part === null || whole === undefined ? part : whole === 0 ? null : (100 * part) / whole

/** Returns the change of a number in percent, or of a share in percentage points; undefined if there is none to tell. */
export function changeOf(now: Amount, before: Amount): { text: string; words: string } | undefined {
  const [current, previous] = [comparableOf(now), comparableOf(before)]
  const isShare = now.whole !== undefined
  if (current === null || previous === null || (previous === 0 && !isShare)) return undefined
  const change = isShare ? current - previous : (100 * current) / previous - 100
  const amount = Math.abs(change).toFixed(Math.abs(change) < 10 ? 1 : 0)
  if (Number(amount) === 0) return { text: 'no change', words: 'the same as' }
  return {
    text: `${change > 0 ? '▲' : '▼'} ${amount} ${isShare ? 'pp' : '%'}`,
    words: `${amount} ${isShare ? 'percentage points' : 'percent'} ${change > 0 ? 'more' : 'less'} than`,
  }
}

interface SignalLift {
  signal: string
  /** Share of the bots, from 0 to 1. */
  share: number
  /** Share of the bots, divided by the share of the other sessions. */
  lift: number
}

/** Returns the signals that more than one in 20 bots has, highest lift first. Takes counts by signal and verdict. */
export function liftSignals(groups: Groups, { bots, others }: { bots: number; others: number }) {
  const signals = [...new Set(groups.flatMap(({ values }) => values.signal ?? []))]
  return signals
    .map((signal): SignalLift => {
      const ofBots = sumSessions(groups, { signal, verdict: 'bot' })
      const ofOthers = sumSessions(groups, { signal }) - ofBots
      const lift = ((ofBots + 1) * (others + 2)) / ((bots + 2) * (ofOthers + 1))
      return { signal, share: ofBots / Math.max(1, bots), lift }
    })
    .filter(({ share, lift }) => share > 0.05 && lift > 1)
    .sort((a, b) => b.lift - a.lift)
}
