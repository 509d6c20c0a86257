import {
  type Answered,
  type CountedRow,
  type FoundRow,
  matesOf,
  newestOthers,
  type Unseen,
} from './counted.ts'
import { areNear, copiesAmong } from './near.ts'
import { nearNames, windows } from './tables.ts'

/** Counts of sessions within a day that are nearly equal, or come evenly. This session is included. */
export interface NearRepeats {
  /** Sessions whose hands are nearly the same. */
  sessions: number
  /** Among them, sessions with nearly the same machine, and from the same address. */
  on_machine: number
  at_address: number
  /** Visitors of the address whose hands have the same pace. */
  pace_visitors: number
  /** Sessions of the address in the last minute, and in its last 15 seconds. */
  in_minute: number
  in_seconds: number
  /** Among the address's newest of five minutes, sessions whose input is alike; 0 unless they abound. */
  copies: number
  /** Between the sessions of the address within the hour: mean in seconds, and its deviation in percent of it. */
  gap_seconds: number | null
  gap_deviation: number | null
}

const burst = { minute: 60_000, seconds: 15_000 }
// So many of the newest sessions of an address are compared with each other.
const mostRecent = 20

const inHour = `filter (where opened_at > target.at - ${windows.hour})`
/** SQL: counts over the newest sessions of the address, whose `gap` is the time to the next one. */
export const ofAddress = {
  pace_visitors: `count(distinct visitor)
    filter (where pace = target.pace and visitor <> coalesce(target.visitor, ''))::integer as pace_visitors`,
  gap_seconds: `round(avg(gap) ${inHour} / 1000)::integer as gap_seconds`,
  in_minute: `count(*) filter (where opened_at > target.at - ${burst.minute})::integer as in_minute`,
  in_seconds: `count(*) filter (where opened_at > target.at - ${burst.seconds})::integer as in_seconds`,
  gap_deviation: `round(100 * stddev_samp(gap) ${inHour} / nullif(avg(gap) ${inHour}, 0))::integer as gap_deviation`,
}

/** SQL: of the address's newest sessions of five minutes, the ids and the numbers of their hands. */
export const recent = `array_to_string((array_agg(session_id || ' ' || encode(hands, 'hex') order by opened_at desc)
    filter (where hands is not null and opened_at > target.at - ${windows.five_minutes}))[1:${mostRecent}], ',') as recent`

/**
 * SQL: sessions whose hands may be nearly the same. Each is a text of its id, `m` for the same machine and `a` for the same
 * address, and the numbers of its hands.
 */
export const candidates = `cross join lateral (select coalesce(string_agg(session_id || ' ' ||
      (case when machine = target.machine then 'm' else '' end) || (case when address = target.address then 'a' else '' end)
      || ' ' || encode(hands, 'hex'), ','), '') as near from (
    ${nearNames.map((name) => newestOthers(`r.${name} = target.${name}`)).join(' union all ')}
  ) one) by_hands`

interface Likeness {
  onMachine: boolean
  atAddress: boolean
}

interface Counts {
  /** All rows of the call. */
  rows: CountedRow[]
  numberOf: (name: keyof typeof ofAddress) => number | undefined
}

export function nearOf(
  row: CountedRow,
  { found, unseen }: Answered,
  { rows, numberOf }: Counts,
): NearRepeats {
  const atAddress = matesOf(row, 'address', unseen)
  const since = (ms: number) => atAddress.filter(([, at]) => at > row.at - ms).length
  const mates = [...new Map([...nearStored(row, found), ...nearUnseen(row, unseen, rows)]).values()]
  const hasHands = row.hands === null ? 0 : 1
  return {
    sessions: hasHands + mates.length,
    on_machine: hasHands + mates.filter(({ onMachine }) => onMachine).length,
    at_address: hasHands + mates.filter(({ atAddress }) => atAddress).length,
    pace_visitors: (row.pace && row.visitor ? 1 : 0) + (numberOf('pace_visitors') ?? 0),
    in_minute: 1 + (numberOf('in_minute') ?? 0) + since(burst.minute),
    in_seconds: 1 + (numberOf('in_seconds') ?? 0) + since(burst.seconds),
    copies: row.hands ? copiesAmong(recentHands(row, found, rows), row.hands) : 0,
    gap_seconds: numberOf('gap_seconds') ?? null,
    gap_deviation: numberOf('gap_deviation') ?? null,
  }
}

function nearStored({ hands }: CountedRow, found: FoundRow | undefined): [string, Likeness][] {
  const texts = found?.near ? found.near.split(',') : []
  return texts.flatMap((text): [string, Likeness][] => {
    const [id = '', same = '', numbers = ''] = text.split(' ')
    if (!hands || !areNear(hands, Buffer.from(numbers, 'hex'))) return []
    return [[id, { onMachine: same.includes('m'), atAddress: same.includes('a') }]]
  })
}

function nearUnseen(row: CountedRow, unseen: Unseen, rows: CountedRow[]): [string, Likeness][] {
  const ids = new Set(nearNames.flatMap((name) => matesOf(row, name, unseen).map(([id]) => id)))
  return rows.flatMap((one): [string, Likeness][] => {
    if (!ids.has(one.session_id) || !row.hands || !one.hands || !areNear(row.hands, one.hands))
      return []
    const likeness = {
      onMachine: isSame(row.machine, one.machine),
      atAddress: isSame(row.address, one.address),
    }
    return [[one.session_id, likeness]]
  })
}

const isSame = (one: Buffer | null, other: Buffer | null) =>
  one !== null && other?.equals(one) === true

function recentHands(row: CountedRow, found: FoundRow | undefined, rows: CountedRow[]): Buffer[] {
  const inCall = rows.flatMap(
    ({ session_id: id, opened_at: at, address, hands }): [string, Buffer][] => {
      const isRecent =
        at > row.at - windows.five_minutes && at <= row.at && isSame(row.address, address)
      return isRecent && hands && id !== row.session_id ? [[id, hands]] : []
    },
  )
  const stored = found?.recent ? found.recent.split(',').toReversed() : []
  const inModel = stored.map((text): [string, Buffer] => {
    const [id = '', numbers = ''] = text.split(' ')
    return [id, Buffer.from(numbers, 'hex')]
  })
  return [...new Map([...inModel, ...inCall]).values()].slice(-mostRecent)
}
