const thinSpace = '\u2009'

/** Formats as `8 412`, with thin spaces. */
export const formatNumber = (value: number): string =>
  Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, thinSpace)

/** Formats as `1 session`, `8 412 sessions` or `2 deliveries`. */
export const pluralize = (thing: string, value: number): string =>
  `${formatNumber(value)} ${Math.round(value) === 1 ? thing : `${thing}s`.replace(/([^aeiou])ys$/, '$1ies')}`

/** Formats as `12.4 %`, or as a dash if the whole is 0. */
export const formatPercent = (part: number, whole: number): string =>
  whole === 0
    ? '–'
    : `${((100 * part) / whole).toFixed(part > 0 && part / whole < 0.1 ? 1 : 0)}${thinSpace}%`

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
] as const
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'narrow' })

/** Formats as `3 min ago`. */
export function formatAgo(time: string, now: number): string {
  const ms = Date.parse(time) - now
  const [unit, length] = units.find(([, minMs]) => Math.abs(ms) >= minMs) ?? ['second', 1000]
  return Math.abs(ms) < 1000 ? 'now' : relative.format(Math.round(ms / length), unit)
}

/** Formats as `3 days`. */
export function formatDuration(ms: number): string {
  const [unit, length] = units.find(([, minMs]) => ms >= minMs) ?? ['second', 1000]
  return Math.round(ms / length).toLocaleString('en', { style: 'unit', unit, unitDisplay: 'long' })
}

const dateTime = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'medium',
  timeStyle: 'long',
})

/** Formats a time in the person's time zone, followed by the zone's name. */
export const formatDateTime = (time: string): string => dateTime.format(new Date(time))

/** Shortens an id in the middle: `sid_01k…3f8a`. */
export const shortId = (id: string): string =>
  id.length > 16 ? `${id.slice(0, 9)}…${id.slice(-4)}` : id

/** Replaces underscores by spaces. */
export const inWords = (name: string): string => name.replaceAll('_', ' ')
