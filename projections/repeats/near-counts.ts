import {
  type Answered,
  type CountedRow,
  type FoundRow,
  matesOf,
  newestOthers,
  type Unseen,
} from './counted.ts'
import { areNear } from './near.ts'
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
  /** Between the sessions of the address within the hour: mean in seconds, and its deviation in percent of it. */
  gap_seconds: number | null
  gap_deviation: number | null
}

const inHour = `filter (where opened_at > target.at - ${windows.hour})`
/** SQL: counts over the newest sessions of the address, whose `gap` is the time to the next one. */
export const ofAddress = {
  pace_visitors: `count(distinct visitor)
    filter (where pace = target.pace and visitor <> coalesce(target.visitor, ''))::integer as pace_visitors`,
  gap_seconds: `round(avg(gap) ${inHour} / 1000)::integer as gap_seconds`,
  gap_deviation: `round(100 * stddev_samp(gap) ${inHour} / nullif(avg(gap) ${inHour}, 0))::integer as gap_deviation`,
}

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
  const mates = [...new Map([...nearStored(row, found), ...nearUnseen(row, unseen, rows)]).values()]
  const hasHands = row.hands === null ? 0 : 1
  return {
    sessions: hasHands + mates.length,
    on_machine: hasHands + mates.filter(({ onMachine }) => onMachine).length,
    at_address: hasHands + mates.filter(({ atAddress }) => atAddress).length,
    pace_visitors: (row.pace && row.visitor ? 1 : 0) + (numberOf('pace_visitors') ?? 0),
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
  const isSame = (one: Buffer | null, other: Buffer | null) => one !== null && other?.equals(one) === true
  return rows.flatMap((one): [string, Likeness][] => {
    if (!ids.has(one.session_id) || !row.hands || !one.hands || !areNear(row.hands, one.hands)) return []
    const likeness = {
      onMachine: isSame(row.machine, one.machine),
      atAddress: isSame(row.address, one.address),
    }
    return [[one.session_id, likeness]]
  })
}
