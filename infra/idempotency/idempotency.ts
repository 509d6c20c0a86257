import type { FastifyReply, FastifyRequest } from 'fastify'
import type pg from 'pg'
import type { Auth } from '../access/auth.ts'
import type { Keyring } from '../crypto/keyring.ts'
import { unavailable } from '../errors/errors.ts'
import type { CommandDeps, DecideAs } from '../event-store/decide.ts'
import { toApiError } from '../http/error-response.ts'
import type { Clock, Random } from '../ids.ts'
import type { Logger } from '../telemetry.ts'
import {
  type CommandName,
  type CommandSecrets,
  commandId,
  commandSecrets,
  type StoredAnswer,
} from './command-secrets.ts'
import { idempotencyKeyOf, inFlight, keyReused, requestText } from './identity.ts'
import {
  begin,
  type CommandLease,
  complete,
  find,
  forgetCommand,
  releaseLease,
  resume,
  type StoredCommand,
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

interface RunOptions {
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
  run(
    options: RunOptions,
    work: (command: Command) => Promise<CommandAnswer>,
  ): Promise<FastifyReply>
  /**
   * Sends the answer that `run` has stored; false when there is none, or no key. It makes no row, so that it may come
   * before a request is counted. ApiError as `run`.
   */
  replay(options: RunOptions): Promise<boolean>
}

export interface IdempotencyOptions {
  pool: pg.Pool
  keyring: Keyring
  clock: Clock
  random: Random
  logger: Logger
}

/** What routes need whose commands may be repeated. */
export interface CommandRouteOptions {
  /** The pool of decisions: a new secret is displayed once, and its answer must not wait behind slow searches. */
  pool: pg.Pool
  decideAs: DecideAs
  auth: Auth
  keyring: Keyring
  clock: Clock
  random: Random
  idempotency: Idempotency
}

/** For a command of the caller's key. With `command`, ids and secrets are the same whenever it is repeated. */
export function commandDeps(
  { decideAs, auth, keyring, clock, random }: Omit<CommandRouteOptions, 'pool' | 'idempotency'>,
  request: FastifyRequest,
  command?: Command,
): CommandDeps {
  const decide = decideAs(auth.actor(request), request)
  return {
    decide,
    keyring,
    clock,
    random,
    ...(command && { random: command.random, idTime: command.now }),
  }
}

interface Known {
  row: StoredCommand
  secrets: CommandSecrets
  answer: StoredAnswer | null
}

interface Attempt {
  lease: CommandLease
  secrets: CommandSecrets
  createdAt: number
}

export function createIdempotency({
  pool,
  keyring,
  clock,
  random,
  logger,
}: IdempotencyOptions): Idempotency {
  function secretsOf({ masterKeyId, seed }: StoredCommand, name: CommandName): CommandSecrets {
    const master = keyring.byId(masterKeyId)
    if (!master)
      throw unavailable(new Error('a command was begun under a master key that is not known here'))
    return commandSecrets(master, { ...name, seed })
  }

  /** What is known of a request's key. ApiError where that is of another request, or of one under way. */
  async function known(named: NamedRequest): Promise<Known | undefined> {
    const now = clock()
    const row = await find(pool, { id: commandId(named), now })
    if (!row) return undefined
    const secrets = secretsOf(row, named)
    if (!row.requestMac.equals(secrets.mac(named.text))) throw keyReused()
    if (!row.answer && row.expiresAt > now) throw inFlight()
    return { row, secrets, answer: row.answer && secrets.open(row.answer) }
  }

  /** One of many requests at once begins the command or goes on with it, and the others get 409. */
  async function started(named: NamedRequest): Promise<Attempt | StoredAnswer> {
    const found = await known(named)
    if (found?.answer) return found.answer
    return found ? resumed(commandId(named), found) : begun(named)
  }

  async function begun(named: NamedRequest): Promise<Attempt> {
    const [seed, now] = [random(16), clock()]
    const secrets = commandSecrets(keyring.current, { ...named, seed })
    const lease = { id: commandId(named), seed, owner: random(16) }
    const row = { masterKeyId: keyring.current.id, requestMac: secrets.mac(named.text) }
    if (!(await begin(pool, { ...lease, ...row, now }))) throw inFlight()
    return { lease, secrets, createdAt: now }
  }

  async function resumed(id: Buffer, { row, secrets }: Known): Promise<Attempt> {
    const lease = { id, seed: row.seed, owner: random(16) }
    if (!(await resume(pool, { ...lease, now: clock() }))) throw inFlight()
    return { lease, secrets, createdAt: row.createdAt }
  }

  return {
    async run(options, work) {
      const { reply } = options
      const named = nameOf(options)
      if (!named) return send(reply, answered(await work({ random, now: clock() })))
      reply.header('cache-control', 'no-store')
      const begun = await started(named)
      if (!('lease' in begun)) return sendAgain(reply, begun)
      return send(reply, await attempt({ pool, random, logger }, begun, work))
    },
    async replay(options) {
      const named = nameOf(options)
      const found = named && (await known(named))
      if (found?.answer) sendAgain(options.reply, found.answer)
      return Boolean(found?.answer)
    },
  }
}

type Work = (command: Command) => Promise<CommandAnswer>

/** Runs the command and stores its answer if that is a success. Throws what `work` throws. */
async function attempt(
  { pool, random, logger }: Pick<IdempotencyOptions, 'pool' | 'random' | 'logger'>,
  { lease, secrets, createdAt }: Attempt,
  work: Work,
): Promise<StoredAnswer> {
  // Best effort: the lease expires by itself, and the caller has to learn what failed first.
  const afterFailure = async (status: number) => {
    const end = status < 500 ? forgetCommand : releaseLease
    await end(pool, lease).catch((err) =>
      logger.warn({ err }, 'the lease of an idempotent command was not released'),
    )
  }
  let answer: StoredAnswer
  try {
    answer = answered(await work({ random: secrets.random, now: createdAt }))
  } catch (error) {
    await afterFailure(toApiError(error).status)
    throw error
  }
  if (answer.status >= 300) {
    await afterFailure(answer.status)
    return answer
  }
  try {
    const stored = await complete(pool, { ...lease, answer: secrets.seal(answer, random) })
    return stored ? secrets.open(stored) : answer
  } catch (err) {
    // The effect is durable: the caller gets the answer, and a repetition finds the effect.
    logger.warn({ err }, 'the answer of an idempotent command was not stored')
    return answer
  }
}

const answered = ({ status, body }: CommandAnswer): StoredAnswer => ({
  status,
  text: JSON.stringify(body),
})

function send(reply: FastifyReply, { status, text }: StoredAnswer): FastifyReply {
  return reply.code(status).type('application/json; charset=utf-8').send(text)
}

function sendAgain(reply: FastifyReply, answer: StoredAnswer): FastifyReply {
  return send(reply.header('idempotent-replayed', 'true'), answer)
}

interface NamedRequest extends CommandName {
  text: string
}

function nameOf({ request, scope, requester }: RunOptions): NamedRequest | undefined {
  const key = idempotencyKeyOf(request)
  if (key === undefined) return undefined
  const text = JSON.stringify([requestText(request), requester])
  return { scope: scope ?? tenantOf(request), key, text }
}

function tenantOf({ principal, routeOptions }: FastifyRequest): string {
  if (!principal)
    throw new Error(`${routeOptions.url} has neither a principal nor a scope of its own`)
  return `${principal.organizationId}/${principal.environment}`
}
