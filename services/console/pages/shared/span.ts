import { signal } from '@preact/signals'

/** Milliseconds of the lengths that an address may have as `last`. */
export const lengths = {
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 604_800_000,
  '30d': 2_592_000_000,
} as const
export type Length = keyof typeof lengths
export const usualLength: Length = '24h'

const minute = 60_000
const thisMinute = () => Math.ceil(Date.now() / minute) * minute
/** The end of this minute. Relative times end there, so that all requests of a minute ask for the same. */
export const now = signal(thisMinute())
setInterval(() => {
  now.value = thisMinute()
}, minute)

export interface TimeSpan {
  since: number
  until: number
  /** Undefined where the address has absolute times. */
  last: Length | undefined
}

const isLength = (text: string | null): text is Length => text !== null && Object.hasOwn(lengths, text)

/** The time that an address asks for: `since` and `until`, or `last` up to now. */
export function spanOf(query: URLSearchParams, until: number): TimeSpan {
  const [from, to] = [query.get('since'), query.get('until')].map((text) => Date.parse(text ?? ''))
  if (from !== undefined && to !== undefined && from < to) return { since: from, until: to, last: undefined }
  const named = query.get('last')
  const last = isLength(named) ? named : usualLength
  return { since: until - lengths[last], until, last }
}

export const isoTime = (time: number): string => new Date(time).toISOString()

/** The smallest interval that gives at most 200 of them. */
export function intervalOf({ since, until }: TimeSpan): { name: 'minute' | 'hour' | 'day'; length: number } {
  const span = until - since
  if (span <= 200 * minute) return { name: 'minute', length: minute }
  if (span <= 200 * 60 * minute) return { name: 'hour', length: 60 * minute }
  return { name: 'day', length: 1440 * minute }
}
