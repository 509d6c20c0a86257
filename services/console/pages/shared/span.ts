import { signal } from '@preact/signals'

/** Lengths of relative periods in milliseconds, by value of the `last` parameter. */
const presetMs = {
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 604_800_000,
  '30d': 2_592_000_000,
} as const
export type Preset = keyof typeof presetMs
const defaultPreset: Preset = '24h'

const minute = 60_000
const thisMinute = () => Math.ceil(Date.now() / minute) * minute
/** End of the current minute. Relative periods end here, so that requests within a minute share a response. */
export const now = signal(thisMinute())

/** Updates `now` every minute while the page is visible. Each update refetches everything shown. */
export function startMinuteTicker(): void {
  const update = () => {
    if (document.visibilityState === 'visible') now.value = thisMinute()
  }
  setInterval(update, minute)
  document.addEventListener('visibilitychange', update)
}

/** A period, in epoch milliseconds. */
export interface TimeSpan {
  since: number
  until: number
  /** Length of a relative period; undefined for an absolute one. */
  last: Preset | undefined
}

const presets: readonly Preset[] = ['1h', '24h', '7d', '30d']

/** Returns the period in a URL: from `since` to `until`, or the `last` hours or days before `now`. */
export function spanOf(query: URLSearchParams, now: number): TimeSpan {
  const [from, to] = [query.get('since'), query.get('until')].map((text) => Date.parse(text ?? ''))
  if (from !== undefined && to !== undefined && from < to)
    return { since: from, until: to, last: undefined }
  const last = presets.find((name) => name === query.get('last')) ?? defaultPreset
  return { since: now - presetMs[last], until: now, last }
}

/** Returns true if the times in a URL are invalid, in which case `spanOf` returns the default period. */
export function hasInvalidTimes(query: URLSearchParams): boolean {
  const { last } = spanOf(query, 0)
  return (
    last !== undefined &&
    ['since', 'until', 'last'].some((name) => query.has(name) && query.get(name) !== last)
  )
}

export const isoTime = (time: number): string => new Date(time).toISOString()

/** Returns the API's parameters of a period. */
export const timesOf = ({ since, until }: Pick<TimeSpan, 'since' | 'until'>) => ({
  since: isoTime(since),
  until: isoTime(until),
})

/** Returns the URL parameters of a period. A relative one stays relative. */
export const timeParameters = (
  span: TimeSpan,
): Record<'since' | 'until' | 'last', string | null> =>
  span.last ? { since: null, until: null, last: span.last } : { ...timesOf(span), last: null }

/** Doubles the period around its middle, up to now. */
export function widenSpan({ since, until }: TimeSpan, now: number): TimeSpan {
  const half = (until - since) / 2
  return {
    since: since - half,
    until: Math.max(until, Math.min(until + half, now)),
    last: undefined,
  }
}

/** Returns the adjacent period of equal length. If it would end in the future, it ends now and becomes relative. */
export function shiftSpan(span: TimeSpan, step: 'earlier' | 'later', now: number): TimeSpan {
  const length = span.until - span.since
  const shift = step === 'earlier' ? -length : length
  const [since, until] = [span.since + shift, span.until + shift]
  if (until < now) return { since, until, last: undefined }
  const last = presets.find((name) => presetMs[name] === length)
  return { since: now - length, until: now, last }
}

/** Formats a time for a `datetime-local` field, in the person's zone: `2026-11-27T14:30`. */
export function toFieldValue(time: number, timeZone?: string): string {
  const format = { dateStyle: 'short', timeStyle: 'short', ...(timeZone && { timeZone }) } as const
  // The Swedish format is ISO 8601 with a space instead of the T.
  return new Intl.DateTimeFormat('sv-SE', format).format(time).replace(' ', 'T')
}

export interface ChartInterval {
  name: 'minute' | 'hour' | 'day'
  /** Milliseconds. */
  length: number
}

/** Returns the smallest interval that gives at most 200 bars. */
export function intervalOf({ since, until }: TimeSpan): ChartInterval {
  const span = until - since
  if (span <= 200 * minute) return { name: 'minute', length: minute }
  if (span <= 200 * 60 * minute) return { name: 'hour', length: 60 * minute }
  return { name: 'day', length: 1440 * minute }
}
