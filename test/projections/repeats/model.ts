import type { Repeats, WindowCounts } from '../../../schemas/events.ts'

export interface ModelSession {
  session: number
  visitor: number | null
  behavior: number | null
  ip: string
  user: string | null
  /** Opening time in minutes. */
  minutes: number
}

const minutesOf = { five_minutes: 5, hour: 60, day: 24 * 60 } as const
const networkOf = (ip: string) => ip.slice(0, ip.lastIndexOf('.'))

/** Returns the repeats of `mine`. Sessions opened later do not count. */
export function countedByHand(others: ModelSession[], mine: ModelSession): Repeats {
  function counts(
    isAlike: (one: ModelSession) => boolean,
    what: (one: ModelSession) => unknown,
  ): WindowCounts {
    const within = (name: keyof typeof minutesOf) => {
      const found = others.filter(
        ({ minutes }) => minutes <= mine.minutes && minutes > mine.minutes - minutesOf[name],
      )
      const alike = [...found, mine].filter(isAlike).map(what)
      return new Set(alike.filter((value) => value !== null && value !== '')).size
    }
    return { five_minutes: within('five_minutes'), hour: within('hour'), day: within('day') }
  }

  const by = <K extends keyof ModelSession>(member: K, what: (one: ModelSession) => unknown) =>
    counts(
      (one) => one[member] !== null && one[member] !== '' && one[member] === mine[member],
      what,
    )
  const session = (one: ModelSession) => one.session
  const visitor = (one: ModelSession) => one.visitor
  return {
    address_sessions: by('ip', session),
    network_sessions: counts(
      (one) => one.ip !== '' && networkOf(one.ip) === networkOf(mine.ip),
      session,
    ),
    visitor_sessions: by('visitor', session),
    snapshot_sessions: counts(() => true, session),
    behavior_sessions: by('behavior', session),
    address_visitors: by('ip', visitor),
    visitor_addresses: by('visitor', (one) => one.ip),
    visitor_users: by('visitor', (one) => one.user),
    user_visitors: by('user', visitor),
  }
}
