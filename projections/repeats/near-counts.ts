import {
  type CountedRow,
  newestMatchesSql,
  type RepeatSources,
  type StoredCounts,
  type UnstoredSessions,
  unstoredMatches,
} from './counted.ts'
import { areNear, countCopies } from './near.ts'
import { nearNames, windows } from './tables.ts'

/** Counts of sessions within a day with nearly the same input, or at even intervals. This session is included. */
export interface NearRepeats {
  /** Sessions with nearly the same input. */
  sessions: number
  /** Sessions among these on nearly the same machine, and from the same address. */
  on_machine: number
  at_address: number
  /** Visitors at the address whose input has the same pace. */
  pace_visitors: number
  /** Sessions of the address in the last minute, and in the last 15 seconds. */
  in_minute: number
  in_seconds: number
  /** Result of `countCopies` over the address's newest sessions within five minutes. */
  copies: number
  /** Mean gap between the address's sessions within the hour, and its standard deviation in percent of the mean. */
  gap_seconds: number | null
  gap_deviation: number | null
}

const burstMs = { minute: 60_000, seconds: 15_000 }
// Newest sessions of an address that are compared with each other.
const maxRecent = 20

const inHour = `filter (where opened_at > target.at - ${windows.hour})`
/** SQL: counts over the address's newest sessions. `gap` is the time until the next session. */
export const addressCountsSql = {
  pace_visitors: `count(distinct visitor)
    filter (where pace = target.pace and visitor <> coalesce(target.visitor, ''))::integer as pace_visitors`,
  gap_seconds: `round(avg(gap) ${inHour} / 1000)::integer as gap_seconds`,
  in_minute: `count(*) filter (where opened_at > target.at - ${burstMs.minute})::integer as in_minute`,
  in_seconds: `count(*) filter (where opened_at > target.at - ${burstMs.seconds})::integer as in_seconds`,
  gap_deviation: `round(100 * stddev_samp(gap) ${inHour} / nullif(avg(gap) ${inHour}, 0))::integer as gap_deviation`,
}

/** SQL: ids and input numbers of the address's newest sessions within five minutes. */
export const recentProfilesSql = `array_to_string((array_agg(session_id || ' ' || encode(hands, 'hex') order by opened_at desc)
    filter (where hands is not null and opened_at > target.at - ${windows.five_minutes}))[1:${maxRecent}], ',') as recent`

/**
 * SQL: sessions whose input may be nearly the same. Each is a text of its id, `m` for the same machine and `a` for the
 * same address, and its input numbers.
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
  numberOf: (name: keyof typeof addressCountsSql) => number | undefined
}

export function nearRepeatsOf(
  row: CountedRow,
  { stored, unstored }: RepeatSources,
  { rows, numberOf }: CallCounts,
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
    pace_visitors: (row.pace && row.visitor ? 1 : 0) + (numberOf('pace_visitors') ?? 0),
    in_minute: 1 + (numberOf('in_minute') ?? 0) + countWithin(burstMs.minute),
    in_seconds: 1 + (numberOf('in_seconds') ?? 0) + countWithin(burstMs.seconds),
    copies: row.hands ? countCopies(recentProfiles(row, stored, rows), row.hands) : 0,
    gap_seconds: numberOf('gap_seconds') ?? null,
    gap_deviation: numberOf('gap_deviation') ?? null,
  }
}

function nearStored({ hands }: CountedRow, stored: StoredCounts | undefined): NearEntry[] {
  const texts = stored?.near ? stored.near.split(',') : []
  return texts.flatMap((text): NearEntry[] => {
    const [id = '', flags = '', numbers = ''] = text.split(' ')
    if (!hands || !areNear(hands, Buffer.from(numbers, 'hex'))) return []
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
    if (!areNear(row.hands, other.hands)) return []
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
