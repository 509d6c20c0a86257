import { signal } from '@preact/signals'

/** Milliseconds of the lengths that an address may have as `last`. */
const lengths = {
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 604_800_000,
  '30d': 2_592_000_000,
} as const
export type Length = keyof typeof lengths
const usualLength: Length = '24h'

const minute = 60_000
const thisMinute = () => Math.ceil(Date.now() / minute) * minute
/** The end of this minute. Relative times end there, so that all requests of a minute ask for the same. */
export const now = signal(thisMinute())

/** Lets time go on while the page is visible, because each minute asks for everything that is shown. */
export function followTime(): void {
  const follow = () => {
    if (document.visibilityState === 'visible') now.value = thisMinute()
  }
  setInterval(follow, minute)
  document.addEventListener('visibilitychange', follow)
}

export interface TimeSpan {
  since: number
  until: number
  /** Undefined where the address has absolute times. */
  last: Length | undefined
}

const usualLengths: readonly Length[] = ['1h', '24h', '7d', '30d']
const isLength = (text: string | null): text is Length => usualLengths.some((name) => name === text)

/** The time that an address asks for: `since` and `until`, or `last` up to now. */
export function spanOf(query: URLSearchParams, until: number): TimeSpan {
  const [from, to] = [query.get('since'), query.get('until')].map((text) => Date.parse(text ?? ''))
  if (from !== undefined && to !== undefined && from < to)
    return { since: from, until: to, last: undefined }
  const named = query.get('last')
  const last = isLength(named) ? named : usualLength
  return { since: until - lengths[last], until, last }
}

/** Whether an address has times that cannot be read, so that a usual one takes their place. */
export function hasUnreadableTimes(query: URLSearchParams): boolean {
  const { last } = spanOf(query, 0)
  return (
    last !== undefined &&
    ['since', 'until', 'last'].some((name) => query.has(name) && query.get(name) !== last)
  )
}

export const isoTime = (time: number): string => new Date(time).toISOString()

/** As the address has it: a relative time stays relative. */
export const timeParameters = ({
  since,
  until,
  last,
}: TimeSpan): Record<'since' | 'until' | 'last', string | null> =>
  last
    ? { since: null, until: null, last }
    : { since: isoTime(since), until: isoTime(until), last: null }

/** Twice as long around the same middle, but not beyond now. */
export function widened({ since, until }: TimeSpan, now: number): TimeSpan {
  const half = (until - since) / 2
  return {
    since: since - half,
    until: Math.max(until, Math.min(until + half, now)),
    last: undefined,
  }
}

/** The time as long, before or after this one. One that would go beyond now is the relative one that ends there. */
export function stepped(span: TimeSpan, step: 'earlier' | 'later', now: number): TimeSpan {
  const length = span.until - span.since
  const shift = step === 'earlier' ? -length : length
  const [since, until] = [span.since + shift, span.until + shift]
  if (until < now) return { since, until, last: undefined }
  const last = usualLengths.find((name) => lengths[name] === length)
  return { since: now - length, until: now, last }
}

/** As a field of date and time has it, in the person's zone: `2026-11-27T14:30`. */
export function fieldTime(time: number, timeZone?: string): string {
  const format = { dateStyle: 'short', timeStyle: 'short', ...(timeZone && { timeZone }) } as const
  // Swedish is written as ISO 8601, but for the letter in between.
  return new Intl.DateTimeFormat('sv-SE', format).format(time).replace(' ', 'T')
}

/** The time between two fields, or why there is none. */
export function fieldSpan(since: string, until: string): TimeSpan | string {
  const [from, to] = [Date.parse(since), Date.parse(until)]
  if (Number.isNaN(from) || Number.isNaN(to)) return 'Both times are needed.'
  return from < to
    ? { since: from, until: to, last: undefined }
    : 'The end has to be later than the beginning.'
}

export interface ChartInterval {
  name: 'minute' | 'hour' | 'day'
  /** Milliseconds. */
  length: number
}

/** The smallest interval that gives at most 200 of them. */
export function intervalOf({ since, until }: TimeSpan): ChartInterval {
  const span = until - since
  if (span <= 200 * minute) return { name: 'minute', length: minute }
  if (span <= 200 * 60 * minute) return { name: 'hour', length: 60 * minute }
  return { name: 'day', length: 1440 * minute }
}
