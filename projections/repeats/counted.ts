import { inputNames, keyNames, type Repeatable, type RepeatKeys, windows } from './tables.ts'

/** A count of this many means that many or more, so that counting something frequent is not dearer. */
export const countedTo = 100

/** A decision whose repeats are to be counted. Times are epoch milliseconds. */
export interface CountedSession extends Repeatable {
  session_id: string
  opened_at: number
  /** The end of the windows. */
  at: number
}

export type CountedRow = CountedSession & RepeatKeys & { hands: Buffer | null }

export interface FoundRow {
  /** All counts as one text, `{0,1,...}`, because a column for each would cost more than counting. */
  counts: string
  near: string
  /** Hands of the address's newest sessions; null = there are none. */
  recent: string | null
  /** The read model has the session itself, and its behavior as it is now. */
  known: boolean
  known_behavior: boolean
  has_user: boolean
}

/** SQL: the day's newest other sessions of which the condition holds. */
export const newestOthers = (condition: string) => `(
    select session_id, opened_at, address, visitor, client_user, machine, pace, hands from read.repeats r
    where ${condition} and r.opened_at > target.at - ${windows.day} and r.opened_at <= target.at
      and r.session_id <> target.session_id
    order by r.opened_at desc limit ${countedTo})`

/** By key, the sessions of this call that the read model does not have under it yet, and when each was opened. */
export type Unseen = Map<string, Map<string, number>>

export type KeyName = (typeof keyNames)[number]

const isOfInput = new Set<string>(inputNames)

const placeOf = (name: KeyName, key: Buffer) => `${name} ${key.toString('latin1')}`

export function unseenOf(rows: CountedRow[], found: FoundRow[]): Unseen {
  const unseen: Unseen = new Map()
  rows.forEach((row, i) => {
    for (const name of keyNames) {
      const isStored = found[i]?.known && (!isOfInput.has(name) || found[i]?.known_behavior)
      const key = row[name]
      if (isStored || !key) continue
      const place = placeOf(name, key)
      unseen.set(place, (unseen.get(place) ?? new Map()).set(row.session_id, row.opened_at))
    }
  })
  return unseen
}

export interface Answered {
  found: FoundRow | undefined
  unseen: Unseen
}

/** Other sessions of this call with the same key, and when they were opened. */
export function matesOf(
  row: CountedRow,
  name: KeyName,
  unseen: Unseen,
): [id: string, at: number][] {
  const key = row[name]
  const known = key ? [...(unseen.get(placeOf(name, key)) ?? [])] : []
  return known.filter(([id, at]) => id !== row.session_id && at <= row.at)
}
