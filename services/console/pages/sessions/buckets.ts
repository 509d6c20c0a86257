import type { Verdict } from '../../../../schemas/events.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import type { ChartInterval, TimeSpan } from '../shared/span.ts'

/** Stacking order of verdicts, bottom first. */
export const verdictOrder = ['human', 'inconclusive', 'bot'] as const satisfies Verdict[]

export interface Bucket {
  /** Start of its interval, in UTC. */
  at: number
  /** Counted part of the interval. The ends of the period may cut the first and the last interval. */
  since: number
  until: number
  sessions: Record<Verdict, number>
  /** Sessions whose decisions were deleted by retention, so they have no verdict. */
  expired: number
}

/** Returns a bucket for every interval, including those without sessions. */
export function bucketsOf(
  { groups }: Pick<SessionAggregates, 'groups'>,
  span: TimeSpan,
  { length }: ChartInterval,
): Bucket[] {
  const first = Math.floor(span.since / length) * length
  const count = Math.ceil((span.until - first) / length)
  const buckets = Array.from({ length: count }, (_, i) => {
    const at = first + i * length
    return {
      at,
      since: Math.max(at, span.since),
      until: Math.min(at + length, span.until),
      sessions: { human: 0, inconclusive: 0, bot: 0 },
      expired: 0,
    }
  })
  for (const { start, kind, values, sessions } of groups) {
    const bucket = start && buckets[Math.round((Date.parse(start) - first) / length)]
    if (!bucket) continue
    const verdict = verdictOrder.find((name) => name === values.verdict)
    if (verdict) bucket.sessions[verdict] += sessions
    if (kind === 'ended') bucket.expired += sessions
  }
  return buckets
}

export const sumOf = ({ sessions }: Bucket): number =>
  verdictOrder.reduce((sum, verdict) => sum + sessions[verdict], 0)

/** Returns true if the counts do not reach the end of the bucket's interval. */
export const isPartialBucket = (
  { at }: Bucket,
  { length }: ChartInterval,
  countedTo: number,
): boolean => at + length > countedTo

const date = { day: 'numeric', month: 'short' } as const
const time = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const

/** Returns formatters of bucket times: days in UTC, hours and minutes in the person's time zone. */
export function bucketTimeFormats({ name }: ChartInterval, timeZone?: string) {
  const formatIn = (zone: string | undefined, options: Intl.DateTimeFormatOptions) => {
    const format = new Intl.DateTimeFormat('en-GB', { ...options, ...(zone && { timeZone: zone }) })
    return (at: number) => format.format(at)
  }
  const clock = formatIn(timeZone, time)
  if (name === 'day') {
    const day = formatIn('UTC', { ...date, year: 'numeric' })
    return {
      exact: day,
      range: ({ since }: Bucket) => day(since),
      tick: formatIn('UTC', date),
      clock,
    }
  }
  const exact = formatIn(timeZone, { ...date, year: 'numeric', ...time, timeZoneName: 'short' })
  const end = formatIn(timeZone, { ...time, timeZoneName: 'short' })
  const day = formatIn(timeZone, date)
  const beginsDay = (at: number) => (name === 'hour' ? /^00:/ : /^00:00/).test(clock(at))
  return {
    exact,
    range: ({ since, until }: Bucket) => `${exact(since)} to ${end(until)}`,
    tick: (at: number) => (beginsDay(at) ? day(at) : clock(at)),
    clock,
  }
}

const steps = {
  minute: [1, 2, 5, 10, 15, 30, 60],
  hour: [1, 2, 3, 6, 12, 24],
  day: [1, 2, 7, 14, 28],
}

/**
 * Returns at most `max` bucket starts for the axis labels: round times in the person's time zone, or close to them in
 * zones with a half-hour offset.
 */
export function ticksOf(
  buckets: readonly Bucket[],
  interval: ChartInterval,
  { max, timeZone }: { max: number; timeZone?: string },
): number[] {
  const { clock } = bucketTimeFormats(interval, timeZone)
  const positionOf = ({ at }: Bucket) => {
    const [hours = 0, minutes = 0] = clock(at).split(':').map(Number)
    return { day: at / interval.length, hour: hours, minute: hours * 60 + minutes }[interval.name]
  }
  const positions = buckets.map((bucket) => ({ at: bucket.at, position: positionOf(bucket) }))
  const candidates = steps[interval.name].map((step) =>
    positions.filter(({ position }) => position % step === 0),
  )
  const ticks = candidates.find(({ length }) => length <= max) ?? candidates.at(-1) ?? []
  const stride = Math.ceil(ticks.length / max)
  return ticks.filter((_, i) => i % stride === 0).map(({ at }) => at)
}
