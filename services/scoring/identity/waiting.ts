import { parse } from 'tldts'
import type { Environment } from '../../../schemas/events.ts'
import type { LookupSubject } from './tables.ts'

/** A session whose decisions lack what is looked up. */
export interface WaitingSession {
  session_id: string
  organization_id: string
  environment: Environment
  /** Network source (infra/access/source.ts). */
  source: string
}

export interface LookupRequest {
  subject: LookupSubject
  session: WaitingSession
  /** Not fetched before; epoch milliseconds. */
  dueAt: number
}

/** A look-up and the sessions of one source in one organization that wait for it. */
export interface WaitingLookup extends Pick<LookupRequest, 'subject' | 'dueAt'> {
  organization: string
  source: string
  /** Registrable domain. An address is one by itself. */
  domain: string
  hasFailed: boolean
  sessions: Map<string, WaitingSession & { until: number }>
}

/** Names and how many of each may be taken. */
type Places = [name: string, max: number][]

const sessionPlaces = ({ organization, source }: WaitingLookup): Places => [
  ['all', 20_000],
  [organization, 2000],
  [source, 256],
]

// An attacker can create unlimited subdomains, so limit per registrable domain.
const maxOfDomain = 4

/** Look-ups that sessions wait for, first come, first served. */
export function createLookupQueue() {
  const lookups = new Map<string, WaitingLookup>()
  const waiting = new Map<string, number>()

  function remove(lookup: WaitingLookup, sessionId: string): void {
    if (!lookup.sessions.delete(sessionId)) return
    if (lookup.sessions.size === 0) lookups.delete(keyOf(lookup))
    for (const [name] of sessionPlaces(lookup)) {
      const left = (waiting.get(name) ?? 0) - 1
      if (left > 0) waiting.set(name, left)
      else waiting.delete(name)
    }
  }

  return {
    remove,
    /** Returns the look-up, or undefined if too many sessions wait. */
    add({ session, subject, dueAt }: LookupRequest, until: number): WaitingLookup | undefined {
      const { organization_id: organization, source } = session
      const key = keyOf({ subject, source, organization })
      const lookup = lookups.get(key) ?? {
        subject,
        source,
        organization,
        dueAt,
        domain: domainOf(subject),
        hasFailed: false,
        sessions: new Map(),
      }
      const isWaiting = lookup.sessions.has(session.session_id)
      if (!isWaiting && !takePlaces(waiting, sessionPlaces(lookup))) return undefined
      lookup.sessions.set(session.session_id, { ...session, until })
      lookups.set(key, lookup)
      return lookup
    },
    /** Returns at most `max` look-ups that are due; drops sessions that have waited too long. */
    due(now: number, max: number): WaitingLookup[] {
      for (const lookup of lookups.values())
        for (const { session_id, until } of lookup.sessions.values())
          if (until < now) remove(lookup, session_id)
      const taken = new Map<string, number>()
      const all = [...lookups.values()]
      // Successful look-ups are gone by now, so only failures use up a source's share of a domain.
      for (const lookup of all) if (lookup.hasFailed) takePlaces(taken, domainShare(lookup))
      return all.filter((lookup) => {
        const { organization, source, domain, dueAt, hasFailed } = lookup
        const places: Places = [
          ['all', max],
          [organization, 8],
          [source, 4],
          [`domain ${domain}`, maxOfDomain],
          ...(hasFailed ? [] : domainShare(lookup)),
        ]
        return dueAt <= now && takePlaces(taken, places)
      })
    },
  }
}

const keyOf = ({
  subject,
  source,
  organization,
}: Pick<WaitingLookup, 'subject' | 'source' | 'organization'>) =>
  `${organization} ${source} ${subject}`

const domainShare = ({ domain, source }: WaitingLookup): Places => [
  [`${source} ${domain}`, maxOfDomain],
]

const domainOf = (subject: LookupSubject): string =>
  subject.startsWith('https:') ? (parse(subject).domain ?? new URL(subject).hostname) : subject

function takePlaces(taken: Map<string, number>, places: Places): boolean {
  if (places.some(([name, max]) => (taken.get(name) ?? 0) >= max)) return false
  for (const [name] of places) taken.set(name, (taken.get(name) ?? 0) + 1)
  return true
}
