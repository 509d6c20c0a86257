import type { MatchCount, WatchedValue } from '../../../projections/sessions/anomaly-counts.ts'
import { createSeededRandom } from '../../../services/cli/simulate/generate/random.ts'
import { decideAnomalies } from '../../../services/readback/anomalies.ts'
import { findRises, type PeriodComparison, sum } from '../../../services/readback/rises.ts'

const minute = 60_000
const hour = 60 * minute
export const until = Date.parse('2026-11-27T16:40:00Z')
const since = until - 24 * hour
const firstHour = since - (since % hour)
const slots = Array.from({ length: 25 }, (_, slot) => {
  const start = firstHour + slot * hour
  return { start, part: (Math.min(until, start + hour) - Math.max(since, start)) / hour }
})

interface Field {
  field: WatchedValue['field']
  /** Number of values. The second has half as many sessions as the first, and so on. */
  values: number
  /** Sessions with any of the values, as a share of all. */
  share: number
  /** Standard deviation of the logarithm of an hour's factor. */
  spread: number
  /** Number of random hours of each day that have all sessions, as those of a crawler. */
  hours?: number
}

const fields: Field[] = [
  { field: 'country', values: 40, share: 1, spread: 0.1 },
  { field: 'page_path', values: 60, share: 1, spread: 0.15 },
  { field: 'asn', values: 200, share: 0.95, spread: 0.2 },
  { field: 'signal', values: 40, share: 1.5, spread: 0.2 },
  { field: 'attribution', values: 8, share: 0.04, spread: 0.35 },
  { field: 'agent_provider', values: 6, share: 0.02, spread: 0.35, hours: 6 },
]

export interface Attack {
  start: number
  minutes: number
}
const attackSessions = 250
const attackValues = ['attribution 2', 'page_path 1', 'signal 9', 'signal 25']

/** Returns true if the sessions of the attack have the value. */
export const isAttacked = ({ field, value }: WatchedValue) =>
  attackValues.includes(`${field} ${value}`)

const timesOf = (attack: Attack | undefined) =>
  attack
    ? Array.from(
        { length: attackSessions },
        (_, i) => attack.start + (i * attack.minutes * minute) / attackSessions,
      )
    : []

interface SimulatedDay {
  seed: number
  /** Sessions per day. */
  sessions: number
  days?: number
  attack?: Attack
}

/** Counts the sessions of a day and of the days before, of values that vary by hour and day, and of an attack. */
export function simulateDay({ seed, sessions, days = 7, attack }: SimulatedDay): PeriodComparison {
  const { next, int } = createSeededRandom(String(seed))
  const factor = (spread: number) => Math.exp(spread * normal(next) - spread ** 2 / 2)
  const traffic = Array.from({ length: days + 1 }, () => factor(0.15))
  const ofAttack = slots.map(
    ({ start }) => timesOf(attack).filter((at) => at >= start && at < start + hour).length,
  )

  function countDay(mean: number, { spread, hours }: Field, noon: number) {
    const drift = factor(0.15)
    const active = hours && new Set(Array.from({ length: hours }, () => int(0, 24)))
    return slots.map(({ start, part }, slot) => {
      if (active && !active.has(slot)) return 0
      const swing = 1 + 0.6 * Math.cos((2 * Math.PI * (start / hour - noon)) / 24)
      return poisson((mean / (hours ?? 24)) * part * drift * swing * factor(spread), next)
    })
  }

  const values = fields.flatMap((field) => {
    const ranks = Array.from({ length: field.values }, (_, i) => 1 / (i + 1))
    return ranks.map((rank, i) => {
      const value = { field: field.field, value: String(i) }
      const noon = field.field === 'country' ? int(0, 23) : 14
      const mean = (sessions * field.share * rank) / sum(ranks)
      const [today = [], ...before] = traffic.map((volume) => countDay(mean * volume, field, noon))
      return {
        ...value,
        sessions: today.map((n, slot) => n + (isAttacked(value) ? (ofAttack[slot] ?? 0) : 0)),
        bots: slots.map(() => 0),
        baseline: slots.map((_, slot) => sum(before.map((day) => day[slot] ?? 0))),
        peak: sum(before.map((day) => Math.max(...day))) / days,
      }
    })
  })
  const countries = values.filter(({ field }) => field === 'country')
  return {
    since,
    until,
    days,
    sessions: ofAttack.map((n, slot) => n + sum(countries.map((c) => c.sessions[slot] ?? 0))),
    bots: slots.map(() => 0),
    baseline: slots.map((_, slot) => sum(countries.map((c) => c.baseline[slot] ?? 0))),
    values: values.filter((value) => sum(value.sessions) >= 50),
  }
}

/** Returns the anomalies of a day. Ordinary sessions match one rise each, those of the attack all rises they cause. */
export function anomaliesOf(comparison: PeriodComparison, attack?: Attack) {
  const rises = findRises(comparison)
  const interval = (time: number) => time - (time % (5 * minute))
  const match = (time: number, matched: number[], sessions: number): MatchCount[] =>
    matched.length > 0 ? [{ at: interval(time), first: time, path: null, matched, sessions }] : []
  const ofAttack = timesOf(attack).flatMap((time) => {
    const matched = rises.map((rise, i) =>
      isAttacked(rise) && rise.since <= time && time < rise.until ? [i] : [],
    )
    return match(time, matched.flat(), 1)
  })
  const ordinary = rises.flatMap((rise, i) =>
    slots.flatMap(({ start, part }, slot) => {
      if (start + hour <= rise.since || start >= rise.until) return []
      const attacked = ofAttack.filter(({ first }) => first >= start && first < start + hour)
      const n = (rise.counts[slot] ?? 0) - (isAttacked(rise) ? attacked.length : 0)
      return Array.from({ length: 12 * part }, (_, k) =>
        match(Math.max(start, since) + k * 5 * minute, [i], n / (12 * part)),
      ).flat()
    }),
  )
  return decideAnomalies(comparison, rises, [...ofAttack, ...ordinary])
}

const normal = (next: () => number) =>
  Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())

function poisson(mean: number, next: () => number): number {
  if (mean > 50) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(next)))
  let n = 0
  for (let product = next(); product > Math.exp(-mean); product *= next()) n++
  return n
}
