import { inputNames, keyNames, type Repeatable, type RepeatKeys, windows } from './tables.ts'

/** Limit of every count, which bounds its cost: 100 means 100 or more. */
export const maxCount = 100

/** A session whose repeats are counted at a decision. Times are epoch milliseconds. */
export interface CountedSession extends Repeatable {
  session_id: string
  opened_at: number
  /** End of the windows: the time of the decision. */
  at: number
}

export type CountedRow = CountedSession & RepeatKeys & { hands: Buffer | null }

export interface StoredCounts {
  /** All counts as `{0,1,...}`, because parsing one column per count would cost more than counting. */
  counts: string
  /** Result of `candidatesSql`. */
  near: string
  /** Result of `recentProfilesSql`; null if there is none. */
  recent: string | null
  /** True if the read model has the session. */
  is_stored: boolean
  /** True if the read model has the session's current behavior. */
  is_behavior_stored: boolean
  has_user: boolean
}

/** Returns SQL for the newest other sessions within a day that meet the condition. */
export const newestMatchesSql = (condition: string) => `(
    select session_id, opened_at, address, visitor, client_user, machine, pace, hands from read.repeats r
    where ${condition} and r.opened_at > target.at - ${windows.day} and r.opened_at <= target.at
      and r.session_id <> target.session_id
    order by r.opened_at desc limit ${maxCount})`

/** Sessions of a call that the read model does not have yet, by key: their ids and opening times. */
export type UnstoredSessions = Map<string, Map<string, number>>

export type KeyName = (typeof keyNames)[number]

const inputKeys = new Set<string>(inputNames)

const indexKey = (name: KeyName, key: Buffer) => `${name} ${key.toString('latin1')}`

export function unstoredSessions(rows: CountedRow[], stored: StoredCounts[]): UnstoredSessions {
  const unstored: UnstoredSessions = new Map()
  rows.forEach((row, i) => {
    for (const name of keyNames) {
      const isStored =
        stored[i]?.is_stored && (!inputKeys.has(name) || stored[i]?.is_behavior_stored)
      const key = row[name]
      if (isStored || !key) continue
      const entry = indexKey(name, key)
      unstored.set(entry, (unstored.get(entry) ?? new Map()).set(row.session_id, row.opened_at))
    }
  })
  return unstored
}

export interface RepeatSources {
  stored: StoredCounts | undefined
  unstored: UnstoredSessions
}

/** Returns the other unstored sessions that have the same key, with their opening times. */
export function unstoredMatches(
  row: CountedRow,
  name: KeyName,
  unstored: UnstoredSessions,
): [id: string, at: number][] {
  const key = row[name]
  const matches = key ? [...(unstored.get(indexKey(name, key)) ?? [])] : []
  return matches.filter(([id, at]) => id !== row.session_id && at <= row.at)
}
