import { parse } from 'tldts'
import type { Environment } from '../../../schemas/events.ts'
import type { LookupSubject } from './tables.ts'

/** A session whose decision needs the result of a lookup. */
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
  /** Earliest time of the fetch, epoch milliseconds. */
  dueAt: number
}

/** A lookup, and the sessions of one source and organization that wait for it. */
export interface WaitingLookup extends Pick<LookupRequest, 'subject' | 'dueAt'> {
  organization: string
  source: string
  /** Registrable domain of a directory, or the IP address. */
  domain: string
  hasFailed: boolean
  sessions: Map<string, WaitingSession & { until: number }>
}

/** Fair-share limits. A request takes one unit of each, or none at all if any is used up. */
type Limits = [name: string, max: number][]

const sessionLimits = ({ organization, source }: WaitingLookup): Limits => [
  ['all', 20_000],
  [organization, 2000],
  [source, 256],
]

// An attacker can create unlimited subdomains, so limit per registrable domain.
const maxPerDomain = 4

/** FIFO queue of lookups that sessions wait for. */
export function createLookupQueue() {
  const lookups = new Map<string, WaitingLookup>()
  /** Number of waiting sessions by limit name. */
  const waiting = new Map<string, number>()

  function remove(lookup: WaitingLookup, sessionId: string): void {
    if (!lookup.sessions.delete(sessionId)) return
    if (lookup.sessions.size === 0) lookups.delete(keyOf(lookup))
    for (const [name] of sessionLimits(lookup)) {
      const remaining = (waiting.get(name) ?? 0) - 1
      if (remaining > 0) waiting.set(name, remaining)
      else waiting.delete(name)
    }
  }

  return {
    remove,
    /** Returns the lookup, or undefined if too many sessions wait. */
    add({ session, subject, dueAt }: LookupRequest, until: number): WaitingLookup | undefined {
      const { organization_id: organization, source } = session
      const key = keyOf({ subject, source, organization })
      const lookup = lookups.get(key) ?? {
        subject,
        source,
        organization,
        dueAt,
        domain: parseRegistrableDomain(subject),
        hasFailed: false,
        sessions: new Map(),
      }
      const isWaiting = lookup.sessions.has(session.session_id)
      if (!isWaiting && !tryTake(waiting, sessionLimits(lookup))) return undefined
      lookup.sessions.set(session.session_id, { ...session, until })
      lookups.set(key, lookup)
      return lookup
    },
    /** Returns at most `max` lookups that are due. Drops sessions that have waited too long. */
    due(now: number, max: number): WaitingLookup[] {
      for (const lookup of lookups.values())
        for (const { session_id, until } of lookup.sessions.values())
          if (until < now) remove(lookup, session_id)
      const taken = new Map<string, number>()
      const queued = [...lookups.values()]
      // Successful lookups have left the queue, so only failures use up a source's share of a domain.
      for (const lookup of queued) if (lookup.hasFailed) tryTake(taken, domainLimit(lookup))
      return queued.filter((lookup) => {
        const { organization, source, domain, dueAt, hasFailed } = lookup
        const limits: Limits = [
          ['all', max],
          [organization, 8],
          [source, 4],
          [`domain ${domain}`, maxPerDomain],
          ...(hasFailed ? [] : domainLimit(lookup)),
        ]
        return dueAt <= now && tryTake(taken, limits)
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

const domainLimit = ({ domain, source }: WaitingLookup): Limits => [
  [`${source} ${domain}`, maxPerDomain],
]

const parseRegistrableDomain = (subject: LookupSubject): string =>
  subject.startsWith('https:') ? (parse(subject).domain ?? new URL(subject).hostname) : subject

function tryTake(taken: Map<string, number>, limits: Limits): boolean {
  if (limits.some(([name, max]) => (taken.get(name) ?? 0) >= max)) return false
  for (const [name] of limits) taken.set(name, (taken.get(name) ?? 0) + 1)
  return true
}
