import type { FastifyReply, FastifyRequest } from 'fastify'
import type pg from 'pg'
import type { Keyring, MasterKey } from '../crypto/keyring.ts'
import { open, seal } from '../crypto/sealing.ts'
import { toApiError } from '../http/error-response.ts'
import type { Clock, Random } from '../ids.ts'
import { counterRandom } from '../random.ts'
import type { Logger } from '../telemetry.ts'
import { idempotencyKeyOf, inFlight, keyReused, mac, requestText } from './identity.ts'
import {
  type BeginRequest,
  begin,
  type Candidate,
  type CommandLock,
  complete,
  forgetCommand,
  type StoredCommand,
  unlock,
} from './store.ts'

/** A command makes its ids and secrets from these, so that a repetition is the same command. */
export interface Command {
  random: Random
  now: number
}

export interface CommandAnswer {
  status: number
  body: object
}

export interface RunOptions {
  request: FastifyRequest
  reply: FastifyReply
  /** Default: the organization and environment of the request's principal. */
  scope?: string
  /** What else of the caller the answer depends on. Who differs in it has sent another request. */
  requester?: string | undefined
}

export interface Idempotency {
  /**
   * Runs `work` and sends its answer. A repetition with the same `Idempotency-Key` within 24 hours gets the stored
   * 2xx answer, byte for byte. Where none was stored, since the process died or answered 5xx, `work` runs again with
   * the same `random` and `now`. ApiError: what `work` throws; 422 for a bad key or one that came with another
   * request. 409 while the first request is under way, 503 when the database is away (nothing ran).
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

export function createIdempotency({ pool, keyring, clock, random, logger }: IdempotencyOptions): Idempotency {
  const box = createAnswerBox({ keyring, random })

  async function keep(answer: StoredAnswer, id: Buffer): Promise<StoredAnswer> {
    const kept = await complete(pool, { id, answer: box.seal(answer, id) })
    return kept ? box.open(kept, id) : answer
  }

  function commandOf({ masterKeyId, seed, createdAt }: StoredCommand): Command {
    const master = keyring.byId(masterKeyId)
    if (!master) throw new Error('a command was begun under an unknown master key')
    return { random: commandRandom(master, seed), now: createdAt }
  }

  async function attempt({ row, token, work }: Attempt): Promise<StoredAnswer> {
    const lock = { id: row.id, token }
    let answer: StoredAnswer
    try {
      answer = answered(await work(commandOf(row)))
    } catch (error) {
      await afterFailure(lock, toApiError(error).status)
      throw error
    }
    if (answer.status >= 300) {
      await afterFailure(lock, answer.status)
      return answer
    }
    // The effect is durable: without its row the caller still gets the answer, and a repetition finds the effect.
    return keep(answer, row.id).catch((err) => {
      logger.warn({ err }, 'the answer of an idempotent command was not stored')
      return answer
    })
  }

  /** Best effort: the lock ends by itself, and the caller has to learn what failed first. */
  async function afterFailure(lock: CommandLock, status: number): Promise<void> {
    const end = status < 500 ? forgetCommand : unlock
    await end(pool, lock).catch((err) => logger.warn({ err }, 'an idempotent command was not let go'))
  }

  return {
    async run({ request, reply, scope = tenantOf(request), requester }, work) {
      const key = idempotencyKeyOf(request)
      if (key === undefined) return send(reply, answered(await work({ random, now: clock() })))
      reply.header('cache-control', 'no-store')
      const token = random(16)
      const candidates = candidatesOf(keyring, { scope, key, request, requester })
      const asked: BeginRequest = {
        lock: JSON.stringify([scope, key]),
        candidates,
        seed: random(16),
        token,
        now: clock(),
      }
      const { verdict, row } = await begin(pool, asked)
      if (verdict === 'other_request') throw keyReused()
      if (verdict === 'in_flight') throw inFlight()
      if (verdict === 'replay' && row.answer) {
        return send(reply.header('idempotent-replayed', 'true'), box.open(row.answer, row.id))
      }
      return send(reply, await attempt({ row, token, work }))
    },
  }
}

interface Attempt {
  row: StoredCommand
  token: Buffer
  work: (command: Command) => Promise<CommandAnswer>
}

const answered = ({ status, body }: CommandAnswer): StoredAnswer => ({ status, text: JSON.stringify(body) })

function send(reply: FastifyReply, { status, text }: StoredAnswer): FastifyReply {
  return reply.code(status).type('application/json; charset=utf-8').send(text)
}

interface Named {
  scope: string
  key: string
  request: FastifyRequest
  requester: string | undefined
}

/** A row is found whichever master key was the current one when the row was made. */
function candidatesOf(
  keyring: Keyring,
  { scope, key, request, requester }: Named,
): [Candidate, ...Candidate[]] {
  const parts = [requestText(request), ...(requester === undefined ? [] : [requester])]
  const under = (master: Keyring['current']) => ({
    id: mac(master, 'key', scope, key),
    masterKeyId: master.id,
    requestMac: mac(master, 'request', ...parts),
  })
  const older = keyring.all.filter(({ id }) => id !== keyring.current.id)
  return [under(keyring.current), ...older.map(under)]
}

function tenantOf({ principal, routeOptions }: FastifyRequest): string {
  if (!principal) throw new Error(`${routeOptions.url} has neither a principal nor a scope of its own`)
  return `${principal.organizationId}/${principal.environment}`
}

/** The same seed gives the same bytes. Only the holder of the master key can tell them. */
export function commandRandom(master: MasterKey, seed: Buffer): Random {
  return counterRandom(master.derive('idempotent-command'), seed)
}

export interface StoredAnswer {
  status: number
  text: string
}

/**
 * A stored answer is status u16 | text, sealed and bound to its row. It may show a secret that exists nowhere else.
 */
export function createAnswerBox({ keyring, random }: { keyring: Keyring; random: Random }) {
  const sealing = (id: Buffer) => ({ keyring, purpose: 'idempotent-answer', context: id.toString('hex') })

  return {
    seal({ status, text }: StoredAnswer, id: Buffer): Buffer {
      const head = Buffer.alloc(2)
      head.writeUInt16BE(status)
      return seal(Buffer.concat([head, Buffer.from(text)]), { ...sealing(id), random })
    },
    open(sealed: Buffer, id: Buffer): StoredAnswer {
      const plaintext = open(sealed, sealing(id))
      if (!plaintext) throw new Error('a stored answer cannot be opened')
      return { status: plaintext.readUInt16BE(0), text: plaintext.toString('utf8', 2) }
    },
  }
}
