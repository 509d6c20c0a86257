import { type Column, unnest } from '../../infra/postgres/arrays.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { Repeats, WindowCounts } from '../../schemas/events.ts'
import {
  type Answered,
  type CountedRow,
  type CountedSession,
  countedTo,
  type FoundRow,
  type KeyName,
  matesOf,
  newestOthers,
  unseenOf,
} from './counted.ts'
import { candidates, type NearRepeats, nearOf, ofAddress, recent } from './near-counts.ts'
import { keyNames, repeatKeys, windows } from './tables.ts'

export interface Counted {
  repeats: Repeats
  near: NearRepeats
}

type Member = keyof Repeats
// Keys by which sessions are counted, and not only compared.
type Countable = Extract<KeyName, 'address' | 'network' | 'visitor' | 'snapshot' | 'behavior'>
type WindowName = keyof WindowCounts
const windowNames: WindowName[] = ['five_minutes', 'hour', 'day']

// By what others are found, and what is counted of them: sessions, or distinct values of a column.
const counted = {
  address: { address_sessions: '*', address_visitors: 'visitor' },
  network: { network_sessions: '*' },
  visitor: { visitor_sessions: '*', visitor_addresses: 'address', visitor_users: 'client_user' },
  snapshot: { snapshot_sessions: '*' },
  behavior: { behavior_sessions: '*' },
  client_user: { user_visitors: 'visitor' },
} as const

// The session's own value, from which others have to differ.
const own = (column: string) => (column === 'client_user' ? 'own.client_user' : `target.${column}`)

// Three counts in one number: each fits into three digits.
const packed = `1 + case when opened_at > target.at - ${windows.hour} then 1000 else 0 end
  + case when opened_at > target.at - ${windows.five_minutes} then 1000000 else 0 end`

function countOf(member: string, what: string): string {
  if (what === '*') return `coalesce(sum(${packed}), 0)::integer as ${member}`
  const counts = windowNames.map((name) => {
    const isRecent = name === 'day' ? '' : ` and opened_at > target.at - ${windows[name]}`
    return `count(distinct ${what}) filter (where ${what} <> coalesce(${own(what)}, '')${isRecent})::integer as ${member}_${name}`
  })
  return counts.join(', ')
}

function countsBy(by: string, members: Record<string, string>): string {
  const counts = Object.entries(members).map(([member, what]) => countOf(member, what))
  const more = by === 'address' ? [...Object.values(ofAddress), recent] : []
  return `cross join lateral (select ${[...counts, ...more].join(', ')} from (
      select session_id, opened_at, address, visitor, client_user, pace, hands,
        ${by === 'address' ? 'lag(opened_at) over (order by opened_at desc) - opened_at' : 'null::bigint'} as gap
      from ${newestOthers(`r.${by} = ${own(by)}`)} newest
    ) one) by_${by}`
}

const targetColumns: Column<CountedRow>[] = [
  { name: 'session_id', type: 'text', of: ({ session_id }) => session_id },
  { name: 'at', type: 'bigint', of: ({ at }) => at },
  ...keyNames.map((name): Column<CountedRow> => ({ name, type: 'bytea', of: (row) => row[name] })),
]

const targetNames = targetColumns.map(({ name }) => name).join(', ')
const countedNames = Object.values(counted).flatMap((members) =>
  Object.entries(members).flatMap(([member, what]) =>
    what === '*' ? [member] : windowNames.map((name) => `${member}_${name}`),
  ),
)

const nearCounts = Object.keys(ofAddress)
const placeOf = new Map([...countedNames, ...nearCounts].map((name, i) => [name, i]))

/**
 * What repeats, for each session, by one statement. Sessions of the same call that the read model does not have yet are
 * counted among each other.
 */
export async function countRepeats(db: Db, sessions: CountedSession[]): Promise<Counted[]> {
  const rows = sessions.map((one) => ({ ...one, ...repeatKeys(one) }))
  const { source, values } = unnest(targetColumns, rows)
  const found = await db.query<FoundRow>({ name: 'count-repeats', text: countText(source), values })
  const unseen = unseenOf(rows, found.rows)
  return rows.map((row, i) => {
    const seen = { found: found.rows[i], unseen }
    return {
      repeats: repeatsOf(row, seen),
      near: nearOf(row, seen, { rows, numberOf: numbersIn(seen.found) }),
    }
  })
}

// Arrays are sub-selects, so that Postgres does not see their length, and takes one plan for all.
const planned = (source: string) =>
  source.replace(/\$\d+::\w+\[\]/g, (array) => `(select ${array})`)

function countText(source: string): string {
  const laterals = Object.entries(counted).map(([by, members]) => countsBy(by, members))
  return `select array[${[...countedNames, ...nearCounts].join(', ')}]::text as counts, near, recent, own.session_id is not null as known, own.client_user is not null as has_user,
      own.behavior is not distinct from target.behavior as known_behavior
    from ${planned(source)} with ordinality as target (${targetNames}, n)
    left join read.repeats own on own.session_id = target.session_id
    ${laterals.join('\n')} ${candidates} order by n`
}

function repeatsOf(row: CountedRow, { found, unseen }: Answered): Repeats {
  const numberOf = numbersIn(found)
  const stored = (member: Member, window: WindowName) =>
    numberOf(`${member}_${window}`) ?? unpacked(numberOf(member) ?? 0)[window]
  const counts = (member: Member, added: (window: WindowName) => number): WindowCounts => ({
    five_minutes: Math.min(countedTo, stored(member, 'five_minutes') + added('five_minutes')),
    hour: Math.min(countedTo, stored(member, 'hour') + added('hour')),
    day: Math.min(countedTo, stored(member, 'day') + added('day')),
  })
  const sessions = (name: Countable) => {
    const mates = matesOf(row, name, unseen)
    const within = (window: WindowName) =>
      mates.filter(([, at]) => at > row.at - windows[window]).length
    return counts(`${name}_sessions`, (window) => (row[name] ? 1 + within(window) : 0))
  }
  const others = (member: Member, isOne: unknown) => counts(member, () => (isOne ? 1 : 0))
  return {
    address_sessions: sessions('address'),
    network_sessions: sessions('network'),
    visitor_sessions: sessions('visitor'),
    snapshot_sessions: sessions('snapshot'),
    behavior_sessions: sessions('behavior'),
    address_visitors: others('address_visitors', row.address && row.visitor),
    visitor_addresses: others('visitor_addresses', row.visitor && row.address),
    visitor_users: others('visitor_users', row.visitor && found?.has_user),
    user_visitors: others('user_visitors', row.visitor && found?.has_user),
  }
}

// Finds a count of the row by its name; undefined where there is nothing to count.
function numbersIn(found: FoundRow | undefined): (name: string) => number | undefined {
  const texts = found?.counts.slice(1, -1).split(',') ?? []
  return (name) => {
    const text = texts[placeOf.get(name) ?? -1]
    return text === undefined || text === 'NULL' ? undefined : Number(text)
  }
}

function unpacked(counts: number): WindowCounts {
  const at = (thousands: number) => Math.floor(counts / 1000 ** thousands) % 1000
  return { day: at(0), hour: at(1), five_minutes: at(2) }
}

/** Each is null while there is no read model of this version yet. */
export type RepeatCounter = (db: Db, sessions: CountedSession[]) => Promise<(Counted | null)[]>

/** Looks for the read model first, because a process that only scores may start before any that makes it. */
export function createRepeatCounter(): RepeatCounter {
  let has = false
  return async (db, sessions) => {
    has ||= await hasRepeats(db)
    return has ? countRepeats(db, sessions) : sessions.map(() => null)
  }
}

async function hasRepeats(db: Db): Promise<boolean> {
  const { rows } = await db.query(
    `select from pg_attribute where attrelid = to_regclass('read.repeats') and attname = 'near_1'`,
  )
  return rows.length > 0
}
