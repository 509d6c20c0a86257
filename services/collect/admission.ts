import type { FastifyInstance } from 'fastify'
import { createFairShare, type Totals } from '../../infra/access/fair-share.ts'
import { type ApiError, unavailable } from '../../infra/errors/errors.ts'
import type { Clock, OrganizationId, Random } from '../../infra/ids.ts'
import { createLru } from '../../infra/lru.ts'

export interface AdmissionLimits {
  maxBacklogMs: number
  maxInFlight: number
}

/** How many sessions may be begun, and not decided yet, at once; undefined while nothing limits them. */
export type Window = number | undefined

export interface Progress {
  /** Sessions that are begun and not decided yet. */
  open: number
  decidedPerSecond: number
  /** Milliseconds since a session was refused. */
  sinceRefusalMs: number
}

const shrinks = 0.8
const grows = 1.05
const releasedAfterMs = 3000
// Any server that decides at all decides so many in time.
const few = 8

/**
 * The window after one more reading, four of which are made in a second. `ages` are the milliseconds that the oldest record
 * of each partition has been waiting. It begins with the sessions that are open when
 * something waits for too long. It shrinks while that is so, but not below what is decided within the bound, because
 * that comes in time. It grows again while nothing waits, and is gone once nobody was refused for a while.
 */
export function nextWindow(
  window: Window,
  { ages }: { ages: readonly number[] },
  progress: Progress & AdmissionLimits,
): Window {
  const { open, decidedPerSecond, sinceRefusalMs, maxBacklogMs } = progress
  const inTime = (decidedPerSecond * maxBacklogMs) / 1000
  if (ages.some((age) => age > maxBacklogMs))
    return Math.max(inTime, Math.min(window ?? open, open) * shrinks)
  if (window === undefined || sinceRefusalMs > releasedAfterMs) return undefined
  return Math.max(few, inTime, window) * grows
}

/**
 * How many of the new sessions that were requested lately may have been admitted, over all organizations: what was, and
 * what is left of the window. Half of the limit of requests in flight is reserved for running sessions.
 */
export function admissible(
  { requested, granted }: Totals,
  load: { window: Window; open: number; inFlight: number; maxInFlight: number },
): number {
  const { window, open, inFlight, maxInFlight } = load
  const withinFlight = requested * Math.min(1, Math.max(0, 2 - inFlight / (maxInFlight / 4)))
  return window === undefined ? withinFlight : Math.min(withinFlight, granted + window - open)
}

export type Shed = 'session' | 'request'

export interface AdmissionOptions extends AdmissionLimits {
  readAges: () => readonly number[]
  random: Random
  onShed: (what: Shed) => void
  /** Milliseconds of which only differences matter. Default: a clock of the process that is never set. */
  clock?: Clock
}

export interface Admission {
  inFlight(): number
  /** Throws 503 where a new session of the organization is one too many. */
  admitSession(organizationId: OrganizationId): void
  /** Notes sessions that were admitted, until they are decided. */
  begun: Begun
  /** The 503 of any request at the limit. */
  refusal(): ApiError | null
  enter(): void
  leave(): void
}

// What an organization requested counts for about as long as a session takes from its opening to its result.
const windowMs = 5000
const stepMs = 250

export function createSessionAdmission(options: AdmissionOptions): Admission {
  const { readAges, random, onShed, clock = () => performance.now(), ...limits } = options
  const begun = createBegun(clock)
  const share = createFairShare({ clock, windowMs })
  let inFlight = 0
  let window: Window
  let steppedAt = Number.NEGATIVE_INFINITY
  let refusedAt = Number.NEGATIVE_INFINITY

  function shed(what: Shed): ApiError {
    onShed(what)
    return unavailable(new Error(`overload: a ${what} was shed`), retrySeconds(random))
  }

  function step(): void {
    const now = clock()
    if (now - steppedAt < stepMs) return
    steppedAt = now
    const progress = {
      open: begun.count(),
      decidedPerSecond: begun.decidedPerSecond(),
      sinceRefusalMs: now - refusedAt,
    }
    window = nextWindow(window, { ages: readAges() }, { ...progress, ...limits })
  }

  return {
    begun,
    inFlight: () => inFlight,
    admitSession(organizationId) {
      step()
      const load = { window, open: begun.count(), inFlight, maxInFlight: limits.maxInFlight }
      const isFree = window === undefined && inFlight <= limits.maxInFlight / 4
      if (share.admits(organizationId, isFree ? undefined : (totals) => admissible(totals, load)))
        return
      refusedAt = clock()
      throw shed('session')
    },
    refusal: () => (inFlight >= limits.maxInFlight ? shed('request') : null),
    enter: () => void inFlight++,
    leave: () => void inFlight--,
  }
}

/** For `Retry-After`: 1 to 3 at random, so that clients that were refused together do not come back together. */
export function retrySeconds(random: Random): number {
  return 1 + (random(1).readUInt8() % 3)
}

/**
 * Hooks that refuse requests over the limit, before their body is read and again before it is handled. A request
 * counts from when its body is there, because otherwise a few slow senders could take all places.
 */
export function limitInFlight(app: FastifyInstance, { refusal, enter, leave }: Admission): void {
  app.addHook('preParsing', (_request, _reply, _payload, done) => done(refusal()))
  app.addHook('preHandler', (_request, reply, done) => {
    const refused = refusal()
    if (refused) return done(refused)
    // A connection that is closed already has no 'close' to come, so the request would be counted for ever.
    if (!reply.raw.destroyed) {
      enter()
      reply.raw.once('close', leave)
    }
    done()
  })
}

/** Sessions that this process opened and whose first decision nobody can read yet. */
interface Begun {
  add(sessionId: string): void
  /** The first body of a session came; once the decision about it can be read, the session is decided. */
  awaits(sessionId: string, decisionId: string): void
  /** These decisions can be read now. */
  decided(decisionIds: readonly string[]): void
  count(): number
  decidedPerSecond(): number
}

// A session counts no longer than this, because one that sends nothing, or nothing that can be decided about, gets no
// decision.
const abandonedMs = 5000
const meanMs = 8000
const maxSessions = 100_000

function createBegun(clock: Clock): Begun {
  // Both are in the order of time, so that abandoned sessions come first.
  const sessions = new Map<string, number>()
  const awaited = createLru<string, string>(maxSessions)
  let decided = { count: 0, at: clock() }

  function recent(): { count: number; at: number } {
    const at = clock()
    return { count: decided.count * Math.exp(-Math.max(0, at - decided.at) / meanMs), at }
  }

  function dropAbandoned(): void {
    const before = clock() - abandonedMs
    for (const [sessionId, begunAt] of sessions) {
      if (begunAt > before && sessions.size <= maxSessions) return
      sessions.delete(sessionId)
    }
  }

  return {
    add: (sessionId) => void sessions.set(sessionId, clock()),
    awaits(sessionId, decisionId) {
      if (sessions.has(sessionId)) awaited.set(decisionId, sessionId)
    },
    decided(decisionIds) {
      for (const id of decisionIds) {
        const sessionId = awaited.get(id)
        awaited.delete(id)
        if (sessionId === undefined || !sessions.delete(sessionId)) continue
        const { count, at } = recent()
        decided = { count: count + 1, at }
      }
    },
    count() {
      dropAbandoned()
      return sessions.size
    },
    decidedPerSecond: () => recent().count / (meanMs / 1000),
  }
}
