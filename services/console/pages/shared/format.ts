const thin = '\u2009'

/** `8 412`, with thin spaces. */
export const formatNumber = (value: number): string =>
  Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, thin)

/** `1 session`, `8 412 sessions` or `2 deliveries`. */
export const amount = (thing: string, value: number): string =>
  `${formatNumber(value)} ${Math.round(value) === 1 ? thing : `${thing}s`.replace(/([^aeiou])ys$/, '$1ies')}`

/** `12.4 %` of a whole; nothing of an empty one. */
export const share = (part: number, whole: number): string =>
  whole === 0
    ? '–'
    : `${((100 * part) / whole).toFixed(part > 0 && part / whole < 0.1 ? 1 : 0)}${thin}%`

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
] as const
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'narrow' })

/** `3 min ago`. */
export function ago(time: string, now: number): string {
  const ms = Date.parse(time) - now
  const [unit, length] = units.find(([, least]) => Math.abs(ms) >= least) ?? ['second', 1000]
  return Math.abs(ms) < 1000 ? 'now' : relative.format(Math.round(ms / length), unit)
}

/** `3 days`. */
export function lasting(ms: number): string {
  const [unit, length] = units.find(([, least]) => ms >= least) ?? ['second', 1000]
  return Math.round(ms / length).toLocaleString('en', { style: 'unit', unit, unitDisplay: 'long' })
}

const exactly = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'medium',
  timeStyle: 'long',
})

/** With its zone, that of the person. */
export const exact = (time: string): string => exactly.format(new Date(time))

/** An id whose middle is left out: `sid_01k…3f8a`. */
export const short = (id: string): string =>
  id.length > 16 ? `${id.slice(0, 9)}…${id.slice(-4)}` : id

/** `webdriver_detected` as people read it. */
export const inWords = (name: string): string => name.replaceAll('_', ' ')
