import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { Verdict } from '../../../../schemas/events.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import type { ChartInterval, TimeSpan } from '../shared/span.ts'
import { valueText } from './fields.ts'

type Group = SessionAggregates['groups'][number]

/** Layer of the stacked bars: sessions with one value of the field, or all other sessions. */
export interface Series {
  /** null = no value; undefined = other values. */
  value: string | null | undefined
  title: string
  /** CSS property of the color. */
  color: string
  /** Present if the field is the verdict. */
  verdict?: Verdict
}

const verdictSeries = (['human', 'inconclusive', 'bot'] as const).map((verdict): Series => {
  return { value: verdict, title: verdict, color: `--${verdict}`, verdict }
})

// Most sessions have none of these, and would hide those that have one.
const rareFields: GroupField[] = ['attribution', 'agent_provider']

/** Returns the number of groups to request for six layers. */
export const seriesCount = (field: GroupField) => (rareFields.includes(field) ? '7' : '6')

const valueIn = ({ kind, values }: Group, field: GroupField): Series['value'] =>
  kind === 'value' ? (values[field] ?? null) : undefined

/** Returns the layers, bottom first: the verdicts, or the values of another field, largest first. */
export function seriesOf(groups: Group[], field: GroupField): Series[] {
  if (field === 'verdict') return verdictSeries
  const sums = new Map<Series['value'], number>()
  for (const group of groups) {
    const value = valueIn(group, field)
    const isShown = group.kind !== 'ended' && (value !== null || !rareFields.includes(field))
    if (isShown) sums.set(value, (sums.get(value) ?? 0) + group.sessions)
  }
  const hasOther = sums.delete(undefined)
  const values = [...sums].sort(([, a], [, b]) => b - a).map(([value = null]) => value)
  return [
    ...values.map((value, i) => ({
      value,
      title: valueText(field, value),
      color: `--series-${i + 1}`,
    })),
    ...(hasOther ? [{ value: undefined, title: 'other', color: '--series-other' }] : []),
  ]
}

export interface Bucket {
  /** Start of its interval, in UTC. */
  at: number
  /** Counted part of the interval. The ends of the period may cut the first and the last interval. */
  since: number
  until: number
  /** True if the counts don't reach the end of the interval. */
  isPartial: boolean
  /** Sessions by series. */
  counts: number[]
  /** Sessions whose decisions were deleted by retention, so they have no values. */
  expired: number
}

export interface ChartData {
  buckets: Bucket[]
  series: Series[]
  interval: ChartInterval
}

interface BucketOptions {
  span: TimeSpan
  interval: ChartInterval
  field: GroupField
  now?: number
}

/** Returns a bucket for every interval, including those without sessions. */
export function bucketsOf(
  groups: Group[],
  { span, interval: { length }, field, now = Date.now() }: BucketOptions,
): Bucket[] {
  const series = seriesOf(groups, field)
  const first = Math.floor(span.since / length) * length
  const buckets = Array.from({ length: Math.ceil((span.until - first) / length) }, (_, i) => {
    const at = first + i * length
    const [since, until] = [Math.max(at, span.since), Math.min(at + length, span.until)]
    const isPartial = at + length > Math.min(span.until, now)
    return { at, since, until, isPartial, counts: series.map(() => 0), expired: 0 }
  })
  for (const group of groups) {
    const { start, kind, sessions } = group
    const bucket = start && buckets[Math.round((Date.parse(start) - first) / length)]
    if (!bucket) continue
    if (kind === 'ended') bucket.expired += sessions
    else {
      const value = valueIn(group, field)
      bucket.counts = bucket.counts.map((count, i) =>
        series[i]?.value === value ? count + sessions : count,
      )
    }
  }
  return buckets
}

export const sumOf = ({ counts }: Pick<Bucket, 'counts'>): number =>
  counts.reduce((sum, sessions) => sum + sessions, 0)

const date = { day: 'numeric', month: 'short' } as const
const time = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const

/** Returns formatters of bucket times: days in UTC, hours and minutes in the person's time zone. */
export function bucketTimeFormats({ name }: ChartInterval, personZone?: string) {
  const isDay = name === 'day'
  const timeZone = isDay ? 'UTC' : personZone
  const formatAs = (options: Intl.DateTimeFormatOptions) => {
    const format = new Intl.DateTimeFormat('en-GB', { ...options, ...(timeZone && { timeZone }) })
    return (at: number) => format.format(at)
  }
  const zoned = { ...time, timeZoneName: 'short' } as const
  const [clock, day, end] = [formatAs(time), formatAs(date), formatAs(zoned)]
  const exact = formatAs({ ...date, year: 'numeric', ...(isDay ? {} : zoned) })
  const beginsDay = (at: number) => isDay || (name === 'hour' ? /^00:/ : /^00:00/).test(clock(at))
  return {
    clock,
    exact,
    range: ({ since, until }: Bucket) =>
      isDay ? exact(since) : `${exact(since)} to ${end(until)}`,
    tick: (at: number) => (beginsDay(at) ? day(at) : clock(at)),
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
  const candidates = steps[interval.name].map((step) =>
    buckets.filter((bucket) => positionOf(bucket) % step === 0),
  )
  const ticks = candidates.find(({ length }) => length <= max) ?? candidates.at(-1) ?? []
  const stride = Math.ceil(ticks.length / max)
  return ticks.filter((_, i) => i % stride === 0).map(({ at }) => at)
}
