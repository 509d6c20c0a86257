import type { FastifyInstance } from 'fastify'
import { type ApiError, unavailable } from '../../infra/errors/errors.ts'
import type { Random } from '../../infra/ids.ts'

export interface Load {
  /** Of each partition, how long its oldest record waits for scoring and the read model, milliseconds. */
  ages: readonly number[]
  /** Requests whose bodies this process holds. */
  inFlight: number
}

export interface AdmissionLimits {
  /** Age from which on new sessions are shed. From twice that on all are. */
  maxBacklogMs: number
  /** Requests of this process, of running sessions too. New sessions are shed from half of it on. */
  maxInFlight: number
}

/**
 * The share of new sessions to shed, 0 to 1. It grows evenly, so that it settles where as much is admitted as is done.
 * A session may fall into any partition: where one of twelve stands still, a twelfth is shed.
 */
export function shedShare({ ages, inFlight }: Load, { maxBacklogMs, maxInFlight }: AdmissionLimits): number {
  const shares = ages.map((age) => excess(age, maxBacklogMs))
  const behind = shares.reduce((sum, share) => sum + share, 0) / (shares.length || 1)
  return Math.max(behind, excess(inFlight, maxInFlight / 2))
}

/** 0 up to the bound, 1 from twice the bound on. */
function excess(value: number, bound: number): number {
  return Math.min(1, Math.max(0, value / bound - 1))
}

export type Shed = 'session' | 'request'

export interface AdmissionOptions extends AdmissionLimits {
  /** Empty while it is not known: then nothing is shed for it. */
  readAges: () => readonly number[]
  random: Random
  onShed: (what: Shed) => void
}

export interface Admission {
  inFlight(): number
  /** Throws 503 where a new session is shed. */
  admitSession(): void
  /** 503 where the process has its limit of requests in flight. */
  refusal(): ApiError | null
  enter(): void
  leave(): void
}

export function createAdmission({ readAges, random, onShed, ...limits }: AdmissionOptions): Admission {
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

/** 1, 2 or 3, so that those refused together do not come back together. */
export function retrySeconds(random: Random): number {
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
    enter()
    reply.raw.once('close', leave)
    done()
  })
}
