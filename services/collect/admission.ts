import type { FastifyInstance } from 'fastify'
import { createFairShare, type Totals } from '../../infra/access/fair-share.ts'
import { type ApiError, unavailable } from '../../infra/errors/errors.ts'
import type { Clock, OrganizationId, Random } from '../../infra/ids.ts'
import { createLru } from '../../infra/lru.ts'

/*
 * Load shedding of the collect API, in each process:
 *
 * - New sessions get 503 while scoring is behind: an adaptive limit bounds the sessions that are open and undecided,
 *   and organizations share it fairly. Running sessions continue.
 * - Any request gets 503 at `maxInFlight` requests. Half of them are reserved for running sessions.
 */

export interface AdmissionLimits {
  /** Scoring counts as behind if its oldest record has waited longer than this. */
  maxBacklogMs: number
  maxInFlight: number
}

/** Maximum number of pending sessions; undefined: no limit. */
export type PendingLimit = number | undefined

export interface ScoringProgress {
  /** Number of pending sessions: opened, but without a decision yet. */
  pending: number
  decidedPerSecond: number
  /** Milliseconds since a new session was last refused. */
  sinceRefusalMs: number
}

const shrinkFactor = 0.8
const growthFactor = 1.05
const liftAfterMs = 3000
// Any server that scores at all decides this many in time.
const minLimit = 8

/**
 * Returns the limit after one control step, of which there are up to four per second. `ages`: how long the oldest
 * record of each partition has waited, milliseconds. While any age exceeds `maxBacklogMs`, the limit starts at the
 * number of pending sessions and shrinks by 20% per step, but not below the number that scoring decides within
 * `maxBacklogMs`. Otherwise it grows by 5% per step, and is lifted after 3 seconds without a refusal.
 */
export function nextPendingLimit(
  limit: PendingLimit,
  { ages }: { ages: readonly number[] },
  progress: ScoringProgress & AdmissionLimits,
): PendingLimit {
  const { pending, decidedPerSecond, sinceRefusalMs, maxBacklogMs } = progress
  const decidedInTime = (decidedPerSecond * maxBacklogMs) / 1000
  if (ages.some((age) => age > maxBacklogMs))
    return Math.max(decidedInTime, Math.min(limit ?? pending, pending) * shrinkFactor)
  if (limit === undefined || sinceRefusalMs > liftAfterMs) return undefined
  return Math.max(minLimit, decidedInTime, limit) * growthFactor
}

/**
 * Returns how many sessions all organizations together may open in the fair-share window: those already granted plus
 * the room below the limit. Above a quarter of `maxInFlight` requests in flight, the number also falls linearly, to
 * zero at half of it, because the other half is reserved for running sessions.
 */
export function maxAdmitted(
  { requested, granted }: Totals,
  load: { limit: PendingLimit; pending: number; inFlight: number; maxInFlight: number },
): number {
  const { limit, pending, inFlight, maxInFlight } = load
  const byInFlight = requested * Math.min(1, Math.max(0, 2 - inFlight / (maxInFlight / 4)))
  return limit === undefined ? byInFlight : Math.min(byInFlight, granted + limit - pending)
}

export type ShedKind = 'session' | 'request'

export interface AdmissionOptions extends AdmissionLimits {
  /** Returns the wait of the oldest record of each partition, milliseconds. */
  readAges: () => readonly number[]
  random: Random
  onShed: (what: ShedKind) => void
  /** Monotonic clock, milliseconds. */
  clock?: Clock
}

export interface Admission {
  inFlight(): number
  /** Throws 503 if the organization may not open a session now. */
  admitSession(organizationId: OrganizationId): void
  pendingSessions: PendingSessions
  /** Returns a 503 error if `maxInFlight` requests are in flight, else null. */
  refusal(): ApiError | null
  enter(): void
  leave(): void
}

// About the time from the opening of a session to its result.
const fairShareWindowMs = 5000
const updateIntervalMs = 250

/** Creates the admission control of the process. The limit is updated when a session opens, at most every 250 ms. */
export function createSessionAdmission(options: AdmissionOptions): Admission {
  const { readAges, random, onShed, clock = () => performance.now(), ...limits } = options
  const pendingSessions = createPendingSessions(clock)
  const fairShare = createFairShare({ clock, windowMs: fairShareWindowMs })
  let inFlight = 0
  let limit: PendingLimit
  let updatedAt = Number.NEGATIVE_INFINITY
  let refusedAt = Number.NEGATIVE_INFINITY

  function shed(what: ShedKind): ApiError {
    onShed(what)
    return unavailable(new Error(`overload: rejected a ${what}`), randomRetrySeconds(random))
  }

  function updateLimit(): void {
    const now = clock()
    if (now - updatedAt < updateIntervalMs) return
    updatedAt = now
    const progress = {
      pending: pendingSessions.count(),
      decidedPerSecond: pendingSessions.decidedPerSecond(),
      sinceRefusalMs: now - refusedAt,
    }
    limit = nextPendingLimit(limit, { ages: readAges() }, { ...progress, ...limits })
  }

  return {
    pendingSessions,
    inFlight: () => inFlight,
    admitSession(organizationId) {
      updateLimit()
      const pending = pendingSessions.count()
      const load = { limit, pending, inFlight, maxInFlight: limits.maxInFlight }
      const isUnlimited = limit === undefined && inFlight <= limits.maxInFlight / 4
      if (
        fairShare.admit(
          organizationId,
          isUnlimited ? undefined : (totals) => maxAdmitted(totals, load),
        )
      )
        return
      refusedAt = clock()
      throw shed('session')
    },
    refusal: () => (inFlight >= limits.maxInFlight ? shed('request') : null),
    enter: () => void inFlight++,
    leave: () => void inFlight--,
  }
}

/** Returns 1 to 3 seconds for `Retry-After`, so that clients rejected together do not retry together. */
export function randomRetrySeconds(random: Random): number {
  return 1 + (random(1).readUInt8() % 3)
}

/**
 * Adds hooks that reject requests above the limit, before the body is read and again before the request is handled. A
 * request counts as in flight once its body has arrived; otherwise a few slow senders could use up the limit.
 */
export function limitInFlight(app: FastifyInstance, { refusal, enter, leave }: Admission): void {
  app.addHook('preParsing', (_request, _reply, _payload, done) => done(refusal()))
  app.addHook('preHandler', (_request, reply, done) => {
    const refused = refusal()
    if (refused) return done(refused)
    // A closed connection emits no further 'close', so the request would be counted forever.
    if (!reply.raw.destroyed) {
      enter()
      reply.raw.once('close', leave)
    }
    done()
  })
}

/** Sessions that this process opened and whose first decision is not in the read model yet. */
interface PendingSessions {
  add(sessionId: string): void
  /** Called when the first body arrives. The session stops being pending once the read model has this decision. */
  expectDecision(sessionId: string, decisionId: string): void
  /** Called with decisions that the read model now has. */
  onDecided(decisionIds: readonly string[]): void
  count(): number
  decidedPerSecond(): number
}

// A session no longer counts after this time, because it never gets a decision if it sends no usable body.
const abandonedAfterMs = 5000
// Time constant of the exponentially decaying count of decisions.
const decayMs = 8000
const maxSessions = 100_000

function createPendingSessions(clock: Clock): PendingSessions {
  // Time when each session was opened, oldest first.
  const sessions = new Map<string, number>()
  // Session ids by decision id.
  const awaited = createLru<string, string>(maxSessions)
  let decisions = { count: 0, at: clock() }

  function decayedDecisions(): { count: number; at: number } {
    const at = clock()
    const decay = Math.exp(-Math.max(0, at - decisions.at) / decayMs)
    return { count: decisions.count * decay, at }
  }

  function dropAbandoned(): void {
    const cutoff = clock() - abandonedAfterMs
    for (const [sessionId, openedAt] of sessions) {
      if (openedAt > cutoff && sessions.size <= maxSessions) return
      sessions.delete(sessionId)
    }
  }

  return {
    add: (sessionId) => void sessions.set(sessionId, clock()),
    expectDecision(sessionId, decisionId) {
      if (sessions.has(sessionId)) awaited.set(decisionId, sessionId)
    },
    onDecided(decisionIds) {
      for (const id of decisionIds) {
        const sessionId = awaited.get(id)
        awaited.delete(id)
        if (sessionId === undefined || !sessions.delete(sessionId)) continue
        const { count, at } = decayedDecisions()
        decisions = { count: count + 1, at }
      }
    },
    count() {
      dropAbandoned()
      return sessions.size
    },
    decidedPerSecond: () => decayedDecisions().count / (decayMs / 1000),
  }
}
