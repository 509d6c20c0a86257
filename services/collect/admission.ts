import type { FastifyInstance } from 'fastify'
import { type ApiError, unavailable } from '../../infra/errors/errors.ts'
import type { Random } from '../../infra/ids.ts'

/** Milliseconds that the oldest record of each partition waits, and requests whose bodies the process holds. */
export interface Load {
  ages: readonly number[]
  inFlight: number
}

export interface AdmissionLimits {
  maxBacklogMs: number
  maxInFlight: number
}

/**
 * The share of new sessions to shed, 0 to 1: none up to the bound, all from twice the bound on. It grows evenly, so that
 * it settles where as much is admitted as is done. A session may fall into any partition: where one of twelve stands
 * still, a twelfth is shed. Half of the limit of requests in flight is kept for running sessions.
 */
export function shedShare({ ages, inFlight }: Load, { maxBacklogMs, maxInFlight }: AdmissionLimits): number {
  const shares = ages.map((age) => excess(age, maxBacklogMs))
  const behind = shares.reduce((sum, share) => sum + share, 0) / (shares.length || 1)
  return Math.max(behind, excess(inFlight, maxInFlight / 4))
}

function excess(value: number, bound: number): number {
  return Math.min(1, Math.max(0, value / bound - 1))
}

export type Shed = 'session' | 'request'

export interface AdmissionOptions extends AdmissionLimits {
  readAges: () => readonly number[]
  random: Random
  onShed: (what: Shed) => void
}

/** `admitSession` throws 503 for a new session; `refusal` is the 503 of any request at the limit. */
export interface Admission {
  inFlight(): number
  admitSession(): void
  refusal(): ApiError | null
  enter(): void
  leave(): void
}

export function createSessionAdmission({ readAges, random, onShed, ...limits }: AdmissionOptions): Admission {
  let inFlight = 0

  function shed(what: Shed): ApiError {
    onShed(what)
    return unavailable(new Error(`overload: a ${what} was shed`), retrySeconds(random))
  }

  return {
    inFlight: () => inFlight,
    admitSession() {
      const share = shedShare({ ages: readAges(), inFlight }, limits)
      if (share > 0 && random(4).readUInt32BE() / 2 ** 32 < share) throw shed('session')
    },
    refusal: () => (inFlight >= limits.maxInFlight ? shed('request') : null),
    enter: () => void inFlight++,
    leave: () => void inFlight--,
  }
}

export function retrySeconds(random: Random): number {
  // Those refused together must not come back together.
  return 1 + (random(1).readUInt8() % 3)
}

/**
 * Hooks that refuse requests over the limit, before their body is read and again before it is kept. A request counts
 * from when its body is there: otherwise a few slow senders could take all places.
 */
export function limitInFlight(app: FastifyInstance, { refusal, enter, leave }: Admission): void {
  app.addHook('preParsing', (_request, _reply, _payload, done) => done(refusal()))
  app.addHook('preHandler', (_request, reply, done) => {
    const refused = refusal()
    if (refused) return done(refused)
    // Of one that is closed already nobody would say so again.
    if (!reply.raw.destroyed) {
      enter()
      reply.raw.once('close', leave)
    }
    done()
  })
}
