import { agentOfDomain } from '../../../infra/agents/catalogue.ts'
import { type Periodic, runPeriodically } from '../../../infra/flow/periodic.ts'
import type { Clock } from '../../../infra/ids.ts'
import { createLru } from '../../../infra/lru.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import type { FetchSubject } from './fetch.ts'
import {
  type LookedUp,
  type LookupResult,
  type LookupSubject,
  readLookups,
  saveLookup,
} from './tables.ts'
import {
  createLookupQueue,
  type LookupRequest,
  type WaitingLookup,
  type WaitingSession,
} from './waiting.ts'

export interface LookupOptions {
  pool: Db
  clock: Clock
  logger: Logger
  fetch: FetchSubject
  /** Called with what an answer was fetched for, once it is in the table. It is called again where it rejects. */
  onAnswer: (subject: LookupSubject, sessions: WaitingSession[]) => Promise<void>
  intervalMs?: number
}

export interface Lookups extends Pick<Periodic, 'stop'> {
  request(request: LookupRequest): void
}

/** A session waits for so long. */
const waitMs = 30 * 60 * 1000
/** After so long a failed look-up is tried again, and a directory is read again for a key that it lacked. */
export const retryMs = 5 * 60 * 1000
// A key that is withdrawn counts for so long; addresses seldom change hands.
const directoryMs = 60 * 60 * 1000
const hostMs = 24 * 60 * 60 * 1000

const mostAtOnce = { catalogued: 4, others: 12 }
const rememberedFailures = 1000

/**
 * Fetches directories and host names beside scoring: at most 16 at once, 4 of them directories of the catalogue, whose
 * queue is apart. Requests beyond the limits, or pending when the process ends, are dropped.
 */
export function runLookups(options: LookupOptions): Lookups {
  const { pool, clock, logger, fetch, intervalMs = 1000 } = options
  const catalogued = createLookupQueue()
  const others = createLookupQueue()
  const queueOf = (subject: LookupSubject) => (isCatalogued(subject) ? catalogued : others)
  const failedAt = createLru<LookupSubject, number>(rememberedFailures)
  const periodic = runPeriodically({
    intervalMs,
    work: async () => {
      const now = clock()
      const due = [
        ...catalogued.due(now, mostAtOnce.catalogued),
        ...others.due(now, mostAtOnce.others),
      ]
      const answers = new Map<LookupSubject, Promise<boolean>>()
      for (const { subject } of due)
        if (!answers.has(subject)) answers.set(subject, isAnswered(subject))
      await Promise.all(
        due.map(async (lookup) => settle(lookup, await answers.get(lookup.subject))),
      )
      return due.length > 0
    },
    onError: (err) => logger.error({ err }, 'agents were not looked up; the next run tries again'),
  })

  async function settle(lookup: WaitingLookup, hasAnswer = false): Promise<void> {
    if (!hasAnswer) {
      lookup.hasFailed = true
      lookup.dueAt = (failedAt.get(lookup.subject) ?? clock()) + retryMs
      return
    }
    const sessions = [...lookup.sessions.values()]
    if (sessions.length > 0) await options.onAnswer(lookup.subject, sessions)
    for (const { session_id } of sessions) queueOf(lookup.subject).remove(lookup, session_id)
  }

  // Another process may have fetched it.
  async function isAnswered(subject: LookupSubject): Promise<boolean> {
    const startedAt = clock()
    if ((failedAt.get(subject) ?? Number.NEGATIVE_INFINITY) > startedAt - retryMs) return false
    const known = (await readLookups(pool, [subject], startedAt)).get(subject)
    if (known && triedAt(known) > startedAt - retryMs) {
      if (!known.last_failure && !('failure' in known.result)) return true
      failedAt.set(subject, triedAt(known))
      return false
    }
    const result = await fetch(subject)
    const now = clock()
    await saveLookup(pool, { subject, result, fetched_at: now, ends_at: now + lifetimeOf(result) })
    if (!('failure' in result)) return true
    failedAt.set(subject, now)
    logger.debug({ reason: result.failure }, 'an agent was not looked up')
    return false
  }

  return {
    stop: periodic.stop,
    request(request) {
      const lookup = queueOf(request.subject).add(request, clock() + waitMs)
      if (lookup && lookup.dueAt <= clock()) periodic.wake()
    },
  }
}

/** When it was fetched last, with or without success. */
export const triedAt = ({ fetched_at, last_failure }: LookedUp): number =>
  last_failure?.failed_at ?? fetched_at

const isCatalogued = (subject: LookupSubject): boolean =>
  subject.startsWith('https:') && agentOfDomain(new URL(subject).host) !== null

function lifetimeOf(result: LookupResult): number {
  if ('failure' in result) return retryMs
  return 'keys' in result ? directoryMs : hostMs
}
