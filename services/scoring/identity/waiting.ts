import { parse } from 'tldts'
import type { Environment } from '../../../schemas/events.ts'
import type { LookupSubject } from './tables.ts'

/** A session whose decisions lack what is looked up. */
export interface WaitingSession {
  session_id: string
  organization_id: string
  environment: Environment
}

export interface LookupRequest {
  subject: LookupSubject
  session: WaitingSession
  /** Network source of the session (infra/access/source.ts). */
  source: string
  /** Not fetched before; epoch milliseconds. */
  dueAt: number
}

/** A look-up and the sessions of one source that wait for it. */
export interface WaitingLookup {
  subject: LookupSubject
  /** Registrable domain; null for an address. */
  domain: string | null
  dueAt: number
  hasFailed: boolean
  share: Share
  sessions: Map<string, WaitingSession & { until: number }>
}

/** The look-ups of one source in one organization. */
interface Share {
  key: string
  organization: string
  lookups: Map<LookupSubject, WaitingLookup>
  /** Sessions that wait. */
  size: number
  /** Number of the last round in which a look-up of it was taken. */
  servedIn: number
}

export interface WaitingOptions {
  /** Sessions that wait, at most (default 20,000). */
  most?: number
  /** The same of one source (default 256). */
  mostOfSource?: number
}

// An attacker can create unlimited subdomains.
const mostOfDomain = 4

export type LookupQueue = ReturnType<typeof createLookupQueue>

/**
 * Look-ups that sessions wait for. Organizations take turns, and within each its sources do. When all places are taken, the
 * largest source of the largest organization gives one up.
 */
export function createLookupQueue({ most = 20_000, mostOfSource = 256 }: WaitingOptions = {}) {
  const shares = new Map<string, Share>()
  let size = 0
  let round = 0

  function remove({ subject, share, sessions }: WaitingLookup, sessionId: string): void {
    if (!sessions.delete(sessionId)) return
    size--
    share.size--
    if (sessions.size === 0) share.lookups.delete(subject)
    if (share.size === 0) shares.delete(share.key)
  }

  function removeAll(lookup: WaitingLookup): void {
    for (const sessionId of [...lookup.sessions.keys()]) remove(lookup, sessionId)
  }

  function makeRoom(asking: Share): boolean {
    const sizes = byOrganization((sum, share) => sum + share.size)
    const isLarger = (share: Share, other: Share) =>
      share.organization === other.organization
        ? share.size > other.size
        : (sizes.get(share.organization) ?? 0) > (sizes.get(other.organization) ?? 0)
    let largest = asking
    for (const share of shares.values()) if (isLarger(share, largest)) largest = share
    const last = [...largest.lookups.values()].at(-1)
    if (largest === asking || !last) return false
    removeAll(last)
    return true
  }

  function byOrganization(join: (value: number, share: Share) => number): Map<string, number> {
    const values = new Map<string, number>()
    for (const share of shares.values())
      values.set(share.organization, join(values.get(share.organization) ?? 0, share))
    return values
  }

  return {
    remove,
    /** Returns the look-up, or undefined where the source has no place. */
    add({ subject, session, source, dueAt }: LookupRequest, until: number): WaitingLookup | undefined {
      const { organization_id: organization, session_id: sessionId } = session
      const key = `${organization} ${source}`
      const share = shares.get(key) ?? { key, organization, lookups: new Map(), size: 0, servedIn: 0 }
      const lookup = share.lookups.get(subject) ?? {
        ...{ subject, dueAt, share, domain: domainOf(subject), hasFailed: false, sessions: new Map() },
      }
      if (!lookup.sessions.has(sessionId)) {
        if (share.size >= mostOfSource || (size >= most && !makeRoom(share))) return undefined
        size++
        share.size++
      }
      lookup.sessions.set(sessionId, { ...session, until })
      share.lookups.set(subject, lookup)
      shares.set(key, share)
      return lookup
    },
    /** Returns at most `count` look-ups that are due, four of one domain; drops sessions that have waited too long. */
    due(now: number, count: number): WaitingLookup[] {
      const lookups = [...shares.values()].flatMap((share) => [...share.lookups.values()])
      for (const lookup of lookups)
        for (const { session_id, until } of lookup.sessions.values())
          if (until < now) remove(lookup, session_id)
      // Successful look-ups are gone by now, so only failures use up a source's share of a domain.
      const failures = new Map<string, number>()
      const domainShare = ({ share, domain }: WaitingLookup) => `${share.key} ${domain}`
      for (const lookup of lookups.filter(({ hasFailed, domain }) => hasFailed && domain))
        failures.set(domainShare(lookup), (failures.get(domainShare(lookup)) ?? 0) + 1)
      for (const lookup of lookups)
        if (!lookup.hasFailed && (failures.get(domainShare(lookup)) ?? 0) >= mostOfDomain) removeAll(lookup)
      const ready = lookups.filter(({ dueAt, sessions }) => dueAt <= now && sessions.size > 0)
      const served = byOrganization((last, share) => Math.max(last, share.servedIn))
      const bySource = inTurns(ready, {
        group: ({ share }) => share.key,
        last: ({ share }) => share.servedIn,
      })
      const inOrder = inTurns(bySource, {
        group: ({ share }) => share.organization,
        last: ({ share }) => served.get(share.organization) ?? 0,
      })
      const taken = new Map<string | null, number>()
      const due = inOrder.filter(({ domain }) => {
        taken.set(domain, (taken.get(domain) ?? 0) + 1)
        return domain === null || (taken.get(domain) ?? 0) <= mostOfDomain
      })
      round++
      for (const { share } of due.slice(0, count)) share.servedIn = round
      return due.slice(0, count)
    },
  }
}

const domainOf = (subject: LookupSubject): string | null =>
  subject.startsWith('https:') ? (parse(subject).domain ?? new URL(subject).hostname) : null

/** The first of each group, then the second of each and so on; groups that were not served for long go first. */
function inTurns(
  lookups: WaitingLookup[],
  { group, last }: Record<'group', (one: WaitingLookup) => string> & { last(one: WaitingLookup): number },
): WaitingLookup[] {
  const ranks = new Map<string, number>()
  const ranked = lookups.map((lookup) => {
    const rank = ranks.get(group(lookup)) ?? 0
    ranks.set(group(lookup), rank + 1)
    return { lookup, rank, servedIn: last(lookup) }
  })
  return ranked.sort((a, b) => a.rank - b.rank || a.servedIn - b.servedIn).map(({ lookup }) => lookup)
}
