import { type Column, unnest } from '../../infra/postgres/arrays.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { Repeats, WindowCounts } from '../../schemas/events.ts'
import { keyNames, type Repeatable, type RepeatKeys, repeatKeys, windows } from './tables.ts'

// A count stops here: that many, or more. So what has been seen very often costs no more than that.
export const countedTo = 100

// A decision whose repeats are to be counted. Times are epoch milliseconds.
export interface Asked extends Repeatable {
  session_id: string
  opened_at: number
  // The end of the windows.
  at: number
}

type Member = keyof Repeats
type WindowName = keyof WindowCounts
const windowNames: WindowName[] = ['five_minutes', 'hour', 'day']

// By what others are found, what is counted of them, and what this session adds to each count.
const counted = {
  address: { address_sessions: '*', address_visitors: 'visitor' },
  network: { network_sessions: '*' },
  visitor: { visitor_sessions: '*', visitor_addresses: 'address', visitor_users: 'client_user' },
  snapshot: { snapshot_sessions: '*' },
  behavior: { behavior_sessions: '*' },
  client_user: { user_visitors: 'visitor' },
} as const

// Where the session's own value is, against which others are distinct.
const own = (column: string) => (column === 'client_user' ? 'own.client_user' : `asked.${column}`)

// Three counts in one number: each fits into three digits.
const packed = `1 + case when opened_at > asked.at - ${windows.hour} then 1000 else 0 end
  + case when opened_at > asked.at - ${windows.five_minutes} then 1000000 else 0 end`

function countOf(member: string, what: string): string {
  if (what === '*') return `coalesce(sum(${packed}), 0)::integer as ${member}`
  const counts = windowNames.map((name) => {
    const isRecent = name === 'day' ? '' : ` and opened_at > asked.at - ${windows[name]}`
    return `count(distinct ${what}) filter (where ${what} <> coalesce(${own(what)}, '')${isRecent})::integer as ${member}_${name}`
  })
  return counts.join(', ')
}

function countsBy(by: string, members: Record<string, string>): string {
  const counts = Object.entries(members).map(([member, what]) => countOf(member, what))
  return `cross join lateral (select ${counts.join(', ')} from (
      select opened_at, address, visitor, client_user from read.repeats r
      where r.${by} = ${own(by)} and r.opened_at > asked.at - ${windows.day} and r.opened_at <= asked.at
        and r.session_id <> asked.session_id
      order by r.opened_at desc limit ${countedTo}
    ) one) by_${by}`
}

type AskedRow = Asked & RepeatKeys

const askedColumns: Column<AskedRow>[] = [
  { name: 'session_id', type: 'text', of: ({ session_id }) => session_id },
  { name: 'at', type: 'bigint', of: ({ at }) => at },
  ...keyNames.map((name): Column<AskedRow> => ({ name, type: 'bytea', of: (row) => row[name] })),
]

const askedNames = askedColumns.map(({ name }) => name).join(', ')
const countedNames = Object.values(counted).flatMap((members) =>
  Object.entries(members).flatMap(([member, what]) =>
    what === '*' ? [member] : windowNames.map((name) => `${member}_${name}`),
  ),
)

const placeOf = new Map(countedNames.map((name, i) => [name, i]))

interface FoundRow {
  // All of them in one text, `{0,1,...}`: to read a column each would cost more than to count.
  counts: string
  known: boolean
  known_behavior: boolean
  has_user: boolean
}

/**
 * What repeats, for each of the decisions, counted by one statement. Sessions of the same call that the read model does
 * not show yet are counted among each other.
 */
export async function countRepeats(db: Db, asked: Asked[]): Promise<Repeats[]> {
  const rows = asked.map((one) => ({ ...one, ...repeatKeys(one) }))
  const { source, values } = unnest(askedColumns, rows)
  const found = await db.query<FoundRow>({ name: 'count-repeats', text: countText(source), values })
  const unseen = unseenOf(rows, found.rows)
  return rows.map((row, i) => repeatsOf(row, { found: found.rows[i], unseen }))
}

// As sub-selects, arrays do not tell their length: so Postgres takes one plan for all, and need not make it each time.
const planned = (source: string) => source.replace(/\$\d+::\w+\[\]/g, (array) => `(select ${array})`)

function countText(source: string): string {
  const laterals = Object.entries(counted).map(([by, members]) => countsBy(by, members))
  return `select array[${countedNames.join(', ')}]::text as counts, own.session_id is not null as known, own.client_user is not null as has_user,
      own.behavior is not distinct from asked.behavior as known_behavior
    from ${planned(source)} with ordinality as asked (${askedNames}, n)
    left join read.repeats own on own.session_id = asked.session_id
    ${laterals.join('\n')} order by n`
}

// By key, the sessions of the call that the read model does not show under it: when each was opened.
type Unseen = Map<string, Map<string, number>>

type KeyName = (typeof keyNames)[number]

const seatOf = (name: KeyName, key: Buffer) => `${name} ${key.toString('latin1')}`

function unseenOf(rows: AskedRow[], found: FoundRow[]): Unseen {
  const unseen: Unseen = new Map()
  rows.forEach((row, i) => {
    for (const name of keyNames) {
      const isShown = found[i]?.known && (name !== 'behavior' || found[i]?.known_behavior)
      const key = row[name]
      if (isShown || !key) continue
      const seat = seatOf(name, key)
      unseen.set(seat, (unseen.get(seat) ?? new Map()).set(row.session_id, row.opened_at))
    }
  })
  return unseen
}

interface Counted {
  found: FoundRow | undefined
  unseen: Unseen
}

function repeatsOf(row: AskedRow, { found, unseen }: Counted): Repeats {
  const numbers = found?.counts.slice(1, -1).split(',').map(Number) ?? []
  const numberOf = (name: string) => numbers[placeOf.get(name) ?? -1]
  const stored = (member: Member, window: WindowName) =>
    numberOf(`${member}_${window}`) ?? unpacked(numberOf(member) ?? 0)[window]
  const counts = (member: Member, added: (window: WindowName) => number): WindowCounts => ({
    five_minutes: Math.min(countedTo, stored(member, 'five_minutes') + added('five_minutes')),
    hour: Math.min(countedTo, stored(member, 'hour') + added('hour')),
    day: Math.min(countedTo, stored(member, 'day') + added('day')),
  })
  const sessions = (name: KeyName) => {
    const mates = matesOf(row, name, unseen)
    const within = (window: WindowName) => mates.filter((at) => at > row.at - windows[window]).length
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

function unpacked(counts: number): WindowCounts {
  const at = (thousands: number) => Math.floor(counts / 1000 ** thousands) % 1000
  return { day: at(0), hour: at(1), five_minutes: at(2) }
}

// When the others were opened that have the key in common with the session.
function matesOf(row: AskedRow, name: KeyName, unseen: Unseen): number[] {
  const key = row[name]
  const known = key ? [...(unseen.get(seatOf(name, key)) ?? [])] : []
  const others = known.filter(([id, at]) => id !== row.session_id && at <= row.at)
  return others.map(([, at]) => at)
}

// Counts within scoring's transaction; null for each while there is no read model yet.
export type RepeatCounter = (db: Db, asked: Asked[]) => Promise<(Repeats | null)[]>

// A process that only scores may start before any other has made the read model.
export function createRepeatCounter(): RepeatCounter {
  let has = false
  return async (db, asked) => {
    has ||= await hasRepeats(db)
    return has ? countRepeats(db, asked) : asked.map(() => null)
  }
}

async function hasRepeats(db: Db): Promise<boolean> {
  const { rows } = await db.query<{ has: boolean }>(`select to_regclass('read.repeats') is not null as has`)
  return rows[0]?.has === true
}
