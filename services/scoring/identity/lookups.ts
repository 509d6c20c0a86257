import { parse } from 'tldts'
import { type Periodic, runPeriodically } from '../../../infra/flow/periodic.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import type { Environment } from '../../../schemas/events.ts'
import type { FetchSubject } from './fetch.ts'
import { type LookedUp, type LookupResult, type LookupSubject, readLookups, saveLookup } from './tables.ts'

/** A session whose decisions lack what is looked up. */
export interface WaitingSession {
  session_id: string
  organization_id: string
  environment: Environment
}

export interface LookupRequest {
  subject: LookupSubject
  session: WaitingSession
  /** Not fetched before; epoch milliseconds. */
  dueAt: number
}

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

interface Item {
  subject: LookupSubject
  dueAt: number
  sessions: Map<string, WaitingSession & { until: number }>
}

/** A session waits for so long. */
export const waitMs = 30 * 60 * 1000
/** After so long a failed look-up is tried again, and a directory is read again for a key that it lacked. */
export const retryMs = 5 * 60 * 1000
// A key that is withdrawn counts for so long; addresses seldom change hands.
const directoryMs = 60 * 60 * 1000
const hostMs = 24 * 60 * 60 * 1000

const mostItems = 1000
const mostSessions = 1000
const mostAtOnce = 16
// Whoever has a domain can make up names below it.
const mostOfDomain = 4

/**
 * Looks up what requests name, beside scoring: at most 16 at once, and four that belong to one domain. What is beyond the
 * bounds, or requested by a process that ends, is not looked up.
 */
export function runLookups(options: LookupOptions): Lookups {
  const { clock, logger, intervalMs = 1000 } = options
  const items = new Map<LookupSubject, Item>()
  const periodic = runPeriodically({
    intervalMs,
    work: async () => {
      const now = clock()
      for (const item of items.values()) giveUp(item, now)
      const due = [...items.values()].filter(({ dueAt }) => dueAt <= now).slice(0, mostAtOnce)
      await Promise.all(due.map((item) => answerItem(item)))
      return due.length === mostAtOnce
    },
    onError: (err) => logger.error({ err }, 'agents were not looked up; the next run tries again'),
  })

  function giveUp({ subject, sessions }: Item, now: number): void {
    for (const { session_id, until } of sessions.values()) if (until < now) sessions.delete(session_id)
    if (sessions.size === 0) items.delete(subject)
  }

  async function answerItem(item: Item): Promise<void> {
    const known = await lookup(item.subject, options)
    if ('failure' in known.result) {
      item.dueAt = known.ends_at
      return
    }
    const sessions = [...item.sessions.values()]
    await options.onAnswer(item.subject, sessions)
    for (const { session_id } of sessions) item.sessions.delete(session_id)
    if (item.sessions.size === 0) items.delete(item.subject)
  }

  function request({ subject, session, dueAt }: LookupRequest): void {
    const item = items.get(subject) ?? (hasRoom(items, subject) ? itemOf(subject, dueAt) : undefined)
    if (!item || item.sessions.size >= mostSessions) return
    items.set(subject, item)
    item.sessions.set(session.session_id, { ...session, until: clock() + waitMs })
    if (item.dueAt <= clock()) periodic.wake()
  }
  return { request, stop: periodic.stop }
}

const itemOf = (subject: LookupSubject, dueAt: number): Item => ({ subject, dueAt, sessions: new Map() })

function hasRoom(items: Map<LookupSubject, Item>, subject: LookupSubject): boolean {
  const domain = domainOf(subject)
  const ofDomain = [...items.keys()].filter((other) => domain !== null && domainOf(other) === domain)
  return items.size < mostItems && ofDomain.length < mostOfDomain
}

// Null for an address.
const domainOf = (subject: LookupSubject): string | null =>
  subject.startsWith('https:') ? (parse(subject).domain ?? new URL(subject).hostname) : null

// Another process may have fetched it.
async function lookup(
  subject: LookupSubject,
  { pool, clock, fetch, logger }: LookupOptions,
): Promise<LookedUp> {
  const startedAt = clock()
  const known = (await readLookups(pool, [subject], startedAt)).get(subject)
  if (known && known.fetched_at > startedAt - retryMs) return known
  const result = await fetch(subject)
  const row = { subject, result, fetched_at: clock(), ends_at: clock() + lifetimeOf(result) }
  await saveLookup(pool, row)
  if ('failure' in result) logger.debug({ reason: result.failure }, 'an agent was not looked up')
  return row
}

function lifetimeOf(result: LookupResult): number {
  if ('failure' in result) return retryMs
  return 'keys' in result ? directoryMs : hostMs
}
