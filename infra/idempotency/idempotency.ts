import type { FastifyReply, FastifyRequest } from 'fastify'
import type pg from 'pg'
import type { Keyring } from '../crypto/keyring.ts'
import { toApiError } from '../http/error-response.ts'
import type { Clock, Random } from '../ids.ts'
import type { Logger } from '../telemetry.ts'
import { type Answer, createAnswerBox } from './answer.ts'
import { commandRandom } from './command-random.ts'
import { idempotencyKeyOf, inFlight, keyReused, mac, requestText } from './identity.ts'
import type { StoredCommand } from './rules.ts'
import { type BeginRequest, begin, type Candidate, complete, forget, letGo } from './store.ts'

export { createIdempotencyTables, purgeIdempotencyKeys } from './table.ts'

/** What a command makes its ids and secrets from, so that a repetition is the same command. */
export interface Command {
  random: Random
  /** Epoch milliseconds at which the first attempt began: for ids, not for what is known to have happened later. */
  now: number
}

export interface CommandAnswer {
  status: number
  body: object
}

export interface RunOptions {
  request: FastifyRequest
  reply: FastifyReply
  /** Whose keys they are; default: the organization and environment of the request's principal. */
  scope?: string
}

export interface Idempotency {
  /**
   * Runs `work` and sends its answer. With an `Idempotency-Key`, a repetition within 24 hours gets the stored 2xx
   * answer, byte for byte; when there is none, because the process died or answered 5xx, the repetition runs `work`
   * again with the same `random` and `now`. ApiError: what `work` throws, 422 for a bad key or one that came with
   * another request, 409 while the first request is under way, 503 when the database is away (nothing ran).
   */
  run(options: RunOptions, work: (command: Command) => Promise<CommandAnswer>): Promise<FastifyReply>
}

export interface IdempotencyOptions {
  pool: pg.Pool
  keyring: Keyring
  clock: Clock
  random: Random
  logger: Logger
}

/** Needs the tables of `createIdempotencyTables`. */
export function createIdempotency({ pool, keyring, clock, random, logger }: IdempotencyOptions): Idempotency {
  const box = createAnswerBox({ keyring, random })

  async function keep(answer: Answer, id: Buffer): Promise<Answer> {
    const kept = await complete(pool, { id, answer: box.seal(answer, id) })
    return kept ? box.open(kept, id) : answer
  }

  function commandOf({ masterKeyId, seed, createdAt }: StoredCommand): Command {
    const master = keyring.byId(masterKeyId)
    if (!master) throw new Error('a command was begun under an unknown master key')
    return { random: commandRandom(master, seed), now: createdAt }
  }

  async function attempt({ row, lease, work }: Attempt): Promise<Answer> {
    const held = { id: row.id, lease }
    let answer: Answer
    try {
      answer = answered(await work(commandOf(row)))
    } catch (error) {
      await afterFailure(held, toApiError(error).status)
      throw error
    }
    if (answer.status >= 300) {
      await afterFailure(held, answer.status)
      return answer
    }
    // The effect is durable: without its row the caller still gets the answer, and a repetition finds the effect.
    return keep(answer, row.id).catch((err) => {
      logger.warn({ err }, 'the answer of an idempotent command was not stored')
      return answer
    })
  }

  /** Best effort: the lease ends by itself, and the caller shall learn what failed first. */
  async function afterFailure(held: { id: Buffer; lease: Buffer }, status: number): Promise<void> {
    const end = status < 500 ? forget : letGo
    await end(pool, held).catch((err) => logger.warn({ err }, 'an idempotent command was not let go'))
  }

  return {
    async run({ request, reply, scope = tenantOf(request) }, work) {
      const key = idempotencyKeyOf(request)
      if (key === undefined) return send(reply, answered(await work({ random, now: clock() })))
      reply.header('cache-control', 'no-store')
      const lease = random(16)
      const candidates = candidatesOf(keyring, { scope, key, request })
      const asked: BeginRequest = {
        lock: JSON.stringify([scope, key]),
        candidates,
        seed: random(16),
        lease,
        now: clock(),
      }
      const { verdict, row } = await begin(pool, asked)
      if (verdict === 'other_request') throw keyReused()
      if (verdict === 'in_flight') throw inFlight()
      if (verdict === 'replay' && row.answer) {
        return send(reply.header('idempotent-replayed', 'true'), box.open(row.answer, row.id))
      }
      return send(reply, await attempt({ row, lease, work }))
    },
  }
}

interface Attempt {
  row: StoredCommand
  lease: Buffer
  work: (command: Command) => Promise<CommandAnswer>
}

const answered = ({ status, body }: CommandAnswer): Answer => ({ status, text: JSON.stringify(body) })

function send(reply: FastifyReply, { status, text }: Answer): FastifyReply {
  return reply.code(status).type('application/json; charset=utf-8').send(text)
}

/** A row is found whichever master key was the current one when it was made. */
function candidatesOf(
  keyring: Keyring,
  { scope, key, request }: { scope: string; key: string; request: FastifyRequest },
): [Candidate, ...Candidate[]] {
  const text = requestText(request)
  const under = (master: Keyring['current']) => ({
    id: mac(master, 'key', scope, key),
    masterKeyId: master.id,
    requestMac: mac(master, 'request', text),
  })
  const older = keyring.all.filter(({ id }) => id !== keyring.current.id)
  return [under(keyring.current), ...older.map(under)]
}

function tenantOf({ principal, routeOptions }: FastifyRequest): string {
  if (!principal) throw new Error(`${routeOptions.url} has neither a principal nor a scope of its own`)
  return `${principal.organizationId}/${principal.environment}`
}
