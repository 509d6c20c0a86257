import type { Verdict } from '../../../../schemas/events.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import type { ChartInterval, TimeSpan } from '../shared/span.ts'

/** Verdicts as charts stack them, from below. */
export const verdictOrder = ['human', 'inconclusive', 'bot'] as const satisfies Verdict[]

/** One bar of the chart. */
export interface Bucket {
  /** When its interval begins, in UTC. */
  at: number
  /** What is counted of it: the first and the last one may be cut by the span. */
  since: number
  until: number
  sessions: Record<Verdict, number>
  /** Sessions whose decisions have ended by retention, so that nobody knows whether they meet the filters. */
  ended: number
}

/** An interval without sessions is a zero and no gap. */
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
      ended: 0,
    }
  })
  for (const { start, kind, values, sessions } of groups) {
    const bucket = start && buckets[Math.round((Date.parse(start) - first) / length)]
    if (!bucket) continue
    const verdict = verdictOrder.find((one) => one === values.verdict)
    if (verdict) bucket.sessions[verdict] += sessions
    if (kind === 'ended') bucket.ended += sessions
  }
  return buckets
}

export const sumOf = ({ sessions }: Bucket): number =>
  verdictOrder.reduce((sum, verdict) => sum + sessions[verdict], 0)

/** Whether what was counted at the time has only a part of the bucket. */
export const isUnfinished = (
  { at }: Bucket,
  { length }: ChartInterval,
  countedTo: number,
): boolean => at + length > countedTo

const date = { day: 'numeric', month: 'short' } as const
const time = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const

/** How the times of buckets are written: days as the UTC days that they are, and times in the person's zone. */
export function timesOfBuckets({ name }: ChartInterval, timeZone?: string) {
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
 * Where the axis has its labels: at most so many beginnings of buckets. They are at round times of the person's clock,
 * or as near to them as buckets begin where a zone has half an hour.
 */
export function ticksOf(
  buckets: readonly Bucket[],
  interval: ChartInterval,
  { most, timeZone }: { most: number; timeZone?: string },
): number[] {
  const { clock } = timesOfBuckets(interval, timeZone)
  const placeOf = ({ at }: Bucket) => {
    const [hours = 0, minutes = 0] = clock(at).split(':').map(Number)
    return { day: at / interval.length, hour: hours, minute: hours * 60 + minutes }[interval.name]
  }
  const places = buckets.map((bucket) => ({ at: bucket.at, place: placeOf(bucket) }))
  const spread = steps[interval.name].map((step) =>
    places.filter(({ place }) => place % step === 0),
  )
  const round = spread.find(({ length }) => length <= most) ?? spread.at(-1) ?? []
  const every = Math.ceil(round.length / most)
  return round.filter((_, i) => i % every === 0).map(({ at }) => at)
}
