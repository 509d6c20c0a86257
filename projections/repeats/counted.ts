import { inputNames, keyNames, type Repeatable, type RepeatKeys, windows } from './tables.ts'

// A count stops here: that many, or more. So what has been seen very often costs no more than that.
export const countedTo = 100

// A decision whose repeats are to be counted. Times are epoch milliseconds.
export interface CountedSession extends Repeatable {
  session_id: string
  opened_at: number
  // The end of the windows.
  at: number
}

export type CountedRow = CountedSession & RepeatKeys & { hands: Buffer | null }

export interface FoundRow {
  // All of them in one text, `{0,1,...}`: to read a column each would cost more than to count.
  counts: string
  near: string
  known: boolean
  known_behavior: boolean
  has_user: boolean
}

// Those of the day that the condition is true of.
export const newestOthers = (condition: string) => `(
    select session_id, opened_at, address, visitor, client_user, machine, pace, hands from read.repeats r
    where ${condition} and r.opened_at > asked.at - ${windows.day} and r.opened_at <= asked.at
      and r.session_id <> asked.session_id
    order by r.opened_at desc limit ${countedTo})`

// By key, the sessions of the call that the read model does not show under it: when each was opened.
export type Unseen = Map<string, Map<string, number>>

export type KeyName = (typeof keyNames)[number]

const isOfInput = new Set<string>(inputNames)

const seatOf = (name: KeyName, key: Buffer) => `${name} ${key.toString('latin1')}`

export function unseenOf(rows: CountedRow[], found: FoundRow[]): Unseen {
  const unseen: Unseen = new Map()
  rows.forEach((row, i) => {
    for (const name of keyNames) {
      const isShown = found[i]?.known && (!isOfInput.has(name) || found[i]?.known_behavior)
      const key = row[name]
      if (isShown || !key) continue
      const seat = seatOf(name, key)
      unseen.set(seat, (unseen.get(seat) ?? new Map()).set(row.session_id, row.opened_at))
    }
  })
  return unseen
}

export interface Answered {
  found: FoundRow | undefined
  unseen: Unseen
}

// The others that have the key in common with the session, and when they were opened.
export function matesOf(row: CountedRow, name: KeyName, unseen: Unseen): [id: string, at: number][] {
  const key = row[name]
  const known = key ? [...(unseen.get(seatOf(name, key)) ?? [])] : []
  return known.filter(([id, at]) => id !== row.session_id && at <= row.at)
}
