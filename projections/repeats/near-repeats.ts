import {
  type CountedRow,
  newestMatchesSql,
  type RepeatSources,
  type StoredCounts,
  type UnstoredSessions,
  unstoredMatches,
} from './counted-sessions.ts'
import { areNearDuplicates, countCopies } from './input-profile.ts'
import { nearNames, windows } from './tables.ts'

/** Counts of sessions within a day, including this one, with nearly the same input or at even intervals. */
export interface NearRepeats {
  /** Sessions with nearly the same input. */
  sessions: number
  /** Those of `sessions` on nearly the same machine. */
  on_machine: number
  /** Those of `sessions` from the same address. */
  at_address: number
  /** Visitors at the address whose input has the same pace. */
  pace_visitors: number
  /** Sessions from the address in the last minute. */
  in_minute: number
  /** Sessions from the address in the last 15 seconds. */
  in_seconds: number
  /** Result of `countCopies` over the address's newest sessions within five minutes. */
  copies: number
  /** Mean time between the address's sessions within an hour. */
  gap_seconds: number | null
  /** Standard deviation of that time, in percent of the mean. */
  gap_deviation: number | null
}

const burstMs = { minute: 60_000, seconds: 15_000 }
// The newest sessions of an address, up to this many, are compared with each other.
const maxRecent = 20

const inHour = `filter (where opened_at > target.at - ${windows.hour})`
/** SQL for counts over the address's newest sessions. `gap` is the time until the next session. */
export const addressCountsSql = {
  pace_visitors: `count(distinct visitor)
    filter (where pace = target.pace and visitor <> coalesce(target.visitor, ''))::integer as pace_visitors`,
  gap_seconds: `round(avg(gap) ${inHour} / 1000)::integer as gap_seconds`,
  in_minute: `count(*) filter (where opened_at > target.at - ${burstMs.minute})::integer as in_minute`,
  in_seconds: `count(*) filter (where opened_at > target.at - ${burstMs.seconds})::integer as in_seconds`,
  gap_deviation: `round(100 * stddev_samp(gap) ${inHour} / nullif(avg(gap) ${inHour}, 0))::integer as gap_deviation`,
}

/** SQL for the ids and input numbers of the address's newest sessions within five minutes. */
export const recentProfilesSql = `array_to_string((array_agg(session_id || ' ' || encode(hands, 'hex') order by opened_at desc)
    filter (where hands is not null and opened_at > target.at - ${windows.five_minutes}))[1:${maxRecent}], ',') as recent`

/**
 * SQL for sessions whose input may be nearly the same, each as `id flags numbers`. The flags are `m` for the same
 * machine and `a` for the same address.
 */
export const candidatesSql = `cross join lateral (select coalesce(string_agg(session_id || ' ' ||
      (case when machine = target.machine then 'm' else '' end) || (case when address = target.address then 'a' else '' end)
      || ' ' || encode(hands, 'hex'), ','), '') as near from (
    ${nearNames.map((name) => newestMatchesSql(`r.${name} = target.${name}`)).join(' union all ')}
  ) matches) by_hands`

type NearEntry = [id: string, { isSameMachine: boolean; isSameAddress: boolean }]

interface CallCounts {
  /** All sessions of the call. */
  rows: CountedRow[]
  countOf: (name: keyof typeof addressCountsSql) => number | undefined
}

export function nearRepeatsOf(
  row: CountedRow,
  { stored, unstored }: RepeatSources,
  { rows, countOf }: CallCounts,
): NearRepeats {
  const sameAddress = unstoredMatches(row, 'address', unstored)
  const countWithin = (ms: number) => sameAddress.filter(([, at]) => at > row.at - ms).length
  const near = [
    ...new Map([...nearStored(row, stored), ...nearUnstored(row, unstored, rows)]).values(),
  ]
  const self = row.hands === null ? 0 : 1
  return {
    sessions: self + near.length,
    on_machine: self + near.filter(({ isSameMachine }) => isSameMachine).length,
    at_address: self + near.filter(({ isSameAddress }) => isSameAddress).length,
    pace_visitors: (row.pace && row.visitor ? 1 : 0) + (countOf('pace_visitors') ?? 0),
    in_minute: 1 + (countOf('in_minute') ?? 0) + countWithin(burstMs.minute),
    in_seconds: 1 + (countOf('in_seconds') ?? 0) + countWithin(burstMs.seconds),
    copies: row.hands ? countCopies(recentProfiles(row, stored, rows), row.hands) : 0,
    gap_seconds: countOf('gap_seconds') ?? null,
    gap_deviation: countOf('gap_deviation') ?? null,
  }
}

function nearStored({ hands }: CountedRow, stored: StoredCounts | undefined): NearEntry[] {
  const texts = stored?.near ? stored.near.split(',') : []
  return texts.flatMap((text): NearEntry[] => {
    const [id = '', flags = '', numbers = ''] = text.split(' ')
    if (!hands || !areNearDuplicates(hands, Buffer.from(numbers, 'hex'))) return []
    return [[id, { isSameMachine: flags.includes('m'), isSameAddress: flags.includes('a') }]]
  })
}

function nearUnstored(
  row: CountedRow,
  unstored: UnstoredSessions,
  rows: CountedRow[],
): NearEntry[] {
  const ids = new Set(
    nearNames.flatMap((name) => unstoredMatches(row, name, unstored).map(([id]) => id)),
  )
  return rows.flatMap((other): NearEntry[] => {
    if (!ids.has(other.session_id) || !row.hands || !other.hands) return []
    if (!areNearDuplicates(row.hands, other.hands)) return []
    const isSameMachine = isSame(row.machine, other.machine)
    const isSameAddress = isSame(row.address, other.address)
    return [[other.session_id, { isSameMachine, isSameAddress }]]
  })
}

const isSame = (a: Buffer | null, b: Buffer | null) => a !== null && b?.equals(a) === true

function recentProfiles(
  row: CountedRow,
  stored: StoredCounts | undefined,
  rows: CountedRow[],
): Buffer[] {
  const inCall = rows.flatMap(
    ({ session_id: id, opened_at: at, address, hands }): [string, Buffer][] => {
      const isRecent =
        at > row.at - windows.five_minutes && at <= row.at && isSame(row.address, address)
      return isRecent && hands && id !== row.session_id ? [[id, hands]] : []
    },
  )
  const texts = stored?.recent ? stored.recent.split(',').toReversed() : []
  const inReadModel = texts.map((text): [string, Buffer] => {
    const [id = '', numbers = ''] = text.split(' ')
    return [id, Buffer.from(numbers, 'hex')]
  })
  return [...new Map([...inReadModel, ...inCall]).values()].slice(-maxRecent)
}
