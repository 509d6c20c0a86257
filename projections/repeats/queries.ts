import { type Column, unnest } from '../../infra/postgres/arrays.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { Repeats, WindowCounts } from '../../schemas/events.ts'
import {
  type CountedRow,
  type CountedSession,
  type KeyName,
  maxCount,
  newestMatchesSql,
  type RepeatSources,
  type StoredCounts,
  unstoredMatches,
  unstoredSessions,
} from './counted-sessions.ts'
import {
  addressCountsSql,
  candidatesSql,
  type NearRepeats,
  nearRepeatsOf,
  recentProfilesSql,
} from './near-repeats.ts'
import { keyNames, repeatKeys, windows } from './tables.ts'

export interface RepeatCounts {
  repeats: Repeats
  near: NearRepeats
}

type Member = keyof Repeats
// Keys by which all sessions are counted. The other keys only find similar sessions.
type Countable = Extract<KeyName, 'address' | 'network' | 'visitor' | 'snapshot' | 'behavior'>
type WindowName = keyof WindowCounts
const windowNames: WindowName[] = ['five_minutes', 'hour', 'day']

// Counts by the key that other sessions must share. The value is `*` to count sessions, or the column whose distinct
// values are counted.
const countsByKey = {
  address: { address_sessions: '*', address_visitors: 'visitor' },
  network: { network_sessions: '*' },
  visitor: { visitor_sessions: '*', visitor_addresses: 'address', visitor_users: 'client_user' },
  snapshot: { snapshot_sessions: '*' },
  behavior: { behavior_sessions: '*' },
  client_user: { user_visitors: 'visitor' },
} as const

// Returns SQL for the session's own value. Only the read model has its user.
const targetValue = (column: string) =>
  column === 'client_user' ? 'stored.client_user' : `target.${column}`

// SQL for the counts of all three windows in one number, with three digits each.
const packedCounts = `1 + case when opened_at > target.at - ${windows.hour} then 1000 else 0 end
  + case when opened_at > target.at - ${windows.five_minutes} then 1000000 else 0 end`

function countSql(member: string, column: string): string {
  if (column === '*') return `coalesce(sum(${packedCounts}), 0)::integer as ${member}`
  const counts = windowNames.map((name) => {
    const isRecent = name === 'day' ? '' : ` and opened_at > target.at - ${windows[name]}`
    return `count(distinct ${column}) filter (where ${column} <> coalesce(${targetValue(column)}, '')${isRecent})::integer as ${member}_${name}`
  })
  return counts.join(', ')
}

function countsSql(by: string, members: Record<string, string>): string {
  const counts = Object.entries(members).map(([member, column]) => countSql(member, column))
  const nearSql = by === 'address' ? [...Object.values(addressCountsSql), recentProfilesSql] : []
  return `cross join lateral (select ${[...counts, ...nearSql].join(', ')} from (
      select session_id, opened_at, address, visitor, client_user, pace, hands,
        ${by === 'address' ? 'lag(opened_at) over (order by opened_at desc) - opened_at' : 'null::bigint'} as gap
      from ${newestMatchesSql(`r.${by} = ${targetValue(by)}`)} newest
    ) counted) by_${by}`
}

const targetColumns: Column<CountedRow>[] = [
  { name: 'session_id', type: 'text', encode: ({ session_id }) => session_id },
  { name: 'at', type: 'bigint', encode: ({ at }) => at },
  ...keyNames.map(
    (name): Column<CountedRow> => ({ name, type: 'bytea', encode: (row) => row[name] }),
  ),
]

const targetNames = targetColumns.map(({ name }) => name).join(', ')
const repeatNames = Object.values(countsByKey).flatMap((members) =>
  Object.entries(members).flatMap(([member, column]) =>
    column === '*' ? [member] : windowNames.map((name) => `${member}_${name}`),
  ),
)

const countNames = [...repeatNames, ...Object.keys(addressCountsSql)]
const countPositions = new Map(countNames.map((name, i) => [name, i]))

/** Returns the counts of each session. Includes sessions of the same call that the read model does not have yet. */
export async function countRepeats(db: Db, sessions: CountedSession[]): Promise<RepeatCounts[]> {
  const rows = sessions.map((session) => ({ ...session, ...repeatKeys(session) }))
  const { source, values } = unnest(targetColumns, rows)
  const text = countText(source)
  const stored = await db.query<StoredCounts>({ name: 'count-repeats', text, values })
  const unstored = unstoredSessions(rows, stored.rows)
  return rows.map((row, i) => {
    const sources = { stored: stored.rows[i], unstored }
    return {
      repeats: repeatsOf(row, sources),
      near: nearRepeatsOf(row, sources, { rows, countOf: createCountReader(sources.stored) }),
    }
  })
}

// Wraps arrays in subselects, which hide their lengths from the planner, so that all calls use the same generic plan.
const withHiddenLengths = (source: string) =>
  source.replace(/\$\d+::\w+\[\]/g, (array) => `(select ${array})`)

function countText(source: string): string {
  const laterals = Object.entries(countsByKey).map(([by, members]) => countsSql(by, members))
  return `select array[${countNames.join(', ')}]::text as counts, near, recent, stored.session_id is not null as is_stored, stored.client_user is not null as has_user,
      stored.behavior is not distinct from target.behavior as is_behavior_stored
    from ${withHiddenLengths(source)} with ordinality as target (${targetNames}, n)
    left join read.repeats stored on stored.session_id = target.session_id
    ${laterals.join('\n')} ${candidatesSql} order by n`
}

function repeatsOf(row: CountedRow, { stored, unstored }: RepeatSources): Repeats {
  const countOf = createCountReader(stored)
  const storedCount = (member: Member, window: WindowName) =>
    countOf(`${member}_${window}`) ?? unpackCounts(countOf(member) ?? 0)[window]
  const counts = (member: Member, added: (window: WindowName) => number): WindowCounts => ({
    five_minutes: Math.min(maxCount, storedCount(member, 'five_minutes') + added('five_minutes')),
    hour: Math.min(maxCount, storedCount(member, 'hour') + added('hour')),
    day: Math.min(maxCount, storedCount(member, 'day') + added('day')),
  })
  const sessions = (name: Countable) => {
    const matches = unstoredMatches(row, name, unstored)
    const within = (window: WindowName) =>
      matches.filter(([, at]) => at > row.at - windows[window]).length
    return counts(`${name}_sessions`, (window) => (row[name] ? 1 + within(window) : 0))
  }
  // Stored counts exclude the session's own value.
  const distinct = (member: Member, hasValue: unknown) => counts(member, () => (hasValue ? 1 : 0))
  return {
    address_sessions: sessions('address'),
    network_sessions: sessions('network'),
    visitor_sessions: sessions('visitor'),
    snapshot_sessions: sessions('snapshot'),
    behavior_sessions: sessions('behavior'),
    address_visitors: distinct('address_visitors', row.address && row.visitor),
    visitor_addresses: distinct('visitor_addresses', row.visitor && row.address),
    visitor_users: distinct('visitor_users', row.visitor && stored?.has_user),
    user_visitors: distinct('user_visitors', row.visitor && stored?.has_user),
  }
}

// Returns a function that reads a count by name. It returns undefined if the statement returned no such count.
function createCountReader(stored: StoredCounts | undefined): (name: string) => number | undefined {
  const texts = stored?.counts.slice(1, -1).split(',') ?? []
  return (name) => {
    const text = texts[countPositions.get(name) ?? -1]
    return text === undefined || text === 'NULL' ? undefined : Number(text)
  }
}

function unpackCounts(counts: number): WindowCounts {
  const at = (thousands: number) => Math.floor(counts / 1000 ** thousands) % 1000
  return { day: at(0), hour: at(1), five_minutes: at(2) }
}

/** Returns null for each session until this version's read model exists. */
export type RepeatCounter = (db: Db, sessions: CountedSession[]) => Promise<(RepeatCounts | null)[]>

// A process that only scores may start before the read model is built.
export function createRepeatCounter(): RepeatCounter {
  let isReady = false
  return async (db, sessions) => {
    isReady ||= await hasReadModel(db)
    return isReady ? countRepeats(db, sessions) : sessions.map(() => null)
  }
}

async function hasReadModel(db: Db): Promise<boolean> {
  const { rows } = await db.query(
    `select from pg_attribute where attrelid = to_regclass('read.repeats') and attname = 'near_1'`,
  )
  return rows.length > 0
}
