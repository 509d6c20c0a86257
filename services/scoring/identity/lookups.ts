import { agentOfDomain } from '../../../infra/agents/catalogue.ts'
import { type Periodic, runPeriodically } from '../../../infra/flow/periodic.ts'
import type { Clock } from '../../../infra/ids.ts'
import { createLru } from '../../../infra/lru.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import type { FetchSubject } from './fetch.ts'
import {
  createLookupQueue,
  type LookupRequest,
  type WaitingLookup,
  type WaitingSession,
} from './lookup-queue.ts'
import {
  type LookupResult,
  type LookupSubject,
  readLookups,
  type StoredLookup,
  saveLookup,
} from './tables.ts'

export interface LookupOptions {
  pool: Db
  clock: Clock
  logger: Logger
  fetch: FetchSubject
  /**
   * Called with the sessions that waited for a subject, once its result is stored. Called again if the promise rejects.
   */
  onResult: (subject: LookupSubject, sessions: WaitingSession[]) => Promise<void>
  intervalMs?: number
}

export interface Lookups extends Pick<Periodic, 'stop'> {
  request(request: LookupRequest): void
}

/** Maximum time that a session waits for a lookup. */
const maxWaitMs = 30 * 60 * 1000
/** Delay before a failed lookup is retried, or a directory that lacked a key is fetched again. */
export const lookupRetryMs = 5 * 60 * 1000
// A withdrawn key stays valid for this long.
const directoryLifetimeMs = 60 * 60 * 1000
// Addresses rarely change hands.
const hostLifetimeMs = 24 * 60 * 60 * 1000

const maxConcurrent = { catalogued: 4, others: 12 }
const maxFailures = 1000

/**
 * Fetches key directories and host names in the background: at most 16 at once, 4 of them reserved for the
 * agent catalogue's directories. Requests beyond the limits, or pending when the process ends, are dropped.
 */
export function runLookups(options: LookupOptions): Lookups {
  const { pool, clock, logger, fetch, intervalMs = 1000 } = options
  const catalogued = createLookupQueue()
  const others = createLookupQueue()
  const queueOf = (subject: LookupSubject) => (isCatalogued(subject) ? catalogued : others)
  const failedAt = createLru<LookupSubject, number>(maxFailures)
  const periodic = runPeriodically({
    intervalMs,
    work: async () => {
      const now = clock()
      const due = [
        ...catalogued.due(now, maxConcurrent.catalogued),
        ...others.due(now, maxConcurrent.others),
      ]
      const results = new Map<LookupSubject, Promise<boolean>>()
      for (const { subject } of due)
        if (!results.has(subject)) results.set(subject, lookUp(subject))
      await Promise.all(
        due.map(async (lookup) => settle(lookup, await results.get(lookup.subject))),
      )
      return due.length > 0
    },
    onError: (err) => logger.error({ err }, 'failed to look up agents; retrying'),
  })

  async function settle(lookup: WaitingLookup, hasSucceeded = false): Promise<void> {
    if (!hasSucceeded) {
      lookup.hasFailed = true
      lookup.dueAt = (failedAt.get(lookup.subject) ?? clock()) + lookupRetryMs
      return
    }
    const sessions = [...lookup.sessions.values()]
    if (sessions.length > 0) await options.onResult(lookup.subject, sessions)
    for (const { session_id } of sessions) queueOf(lookup.subject).remove(lookup, session_id)
  }

  // Fetches and stores the subject, unless another process has tried recently. Returns true if there is a result.
  async function lookUp(subject: LookupSubject): Promise<boolean> {
    const startedAt = clock()
    if ((failedAt.get(subject) ?? -Infinity) > startedAt - lookupRetryMs) return false
    const stored = (await readLookups(pool, [subject], startedAt)).get(subject)
    if (stored && lastAttemptAt(stored) > startedAt - lookupRetryMs) {
      if (!stored.last_failure && !('failure' in stored.result)) return true
      failedAt.set(subject, lastAttemptAt(stored))
      return false
    }
    const result = await fetch(subject)
    const now = clock()
    await saveLookup(pool, { subject, result, fetched_at: now, ends_at: now + lifetimeOf(result) })
    if (!('failure' in result)) return true
    failedAt.set(subject, now)
    logger.debug({ reason: result.failure }, 'agent lookup failed')
    return false
  }

  return {
    stop: periodic.stop,
    request(request) {
      const lookup = queueOf(request.subject).add(request, clock() + maxWaitMs)
      if (lookup && lookup.dueAt <= clock()) periodic.wake()
    },
  }
}

/** Returns the time of the last fetch, successful or not. */
export const lastAttemptAt = ({ fetched_at, last_failure }: StoredLookup): number =>
  last_failure?.failed_at ?? fetched_at

const isCatalogued = (subject: LookupSubject): boolean =>
  subject.startsWith('https:') && agentOfDomain(new URL(subject).host) !== null

function lifetimeOf(result: LookupResult): number {
  if ('failure' in result) return lookupRetryMs
  return 'keys' in result ? directoryLifetimeMs : hostLifetimeMs
}
