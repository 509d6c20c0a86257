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
  type CommandKey,
  type CommandSecrets,
  commandId,
  commandSecrets,
  type StoredResponse,
} from './command-secrets.ts'
import { idempotencyKeyOf, inFlightError, keyReusedError, requestText } from './identity.ts'
import {
  type CommandLease,
  findCommand,
  forgetCommand,
  insertCommand,
  releaseLease,
  type StoredCommand,
  storeResponse,
  takeLease,
} from './store.ts'

/** Inputs from which a command derives its ids and secrets, so that a repeat derives the same ones. */
export interface Command {
  random: Random
  now: number
}

export interface CommandResponse {
  status: number
  body: object
}

interface RunOptions {
  request: FastifyRequest
  reply: FastifyReply
  /** Tenant or caller within which the key is unique. Default: the principal's organization and environment. */
  scope?: string
  /** Caller details on which the response depends. A repeat must have the same ones. */
  requester?: string | undefined
}

export interface Idempotency {
  /**
   * Runs `work` and sends its response. A repeat with the same `Idempotency-Key` within 24 hours gets the stored 2xx
   * response, byte for byte. If none was stored, because the process died or responded with 5xx, `work` runs again with
   * the same `random` and `now`. Throws what `work` throws, 422 for an invalid key or one used for another request, 409
   * while the first request is in progress, and 503 if the database is unavailable (then nothing ran).
   */
  run(
    options: RunOptions,
    work: (command: Command) => Promise<CommandResponse>,
  ): Promise<FastifyReply>
  /**
   * Sends the response that `run` stored, or returns false if there is none. It inserts no row, so a request can be
   * replayed before a rate limit counts it. Throws like `run`.
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

/** Dependencies of routes with idempotent commands. */
export interface CommandRouteOptions {
  /** The pool for decisions: a new secret is shown only once, so its response must not queue behind slow searches. */
  pool: pg.Pool
  decideAs: DecideAs
  auth: Auth
  keyring: Keyring
  clock: Clock
  random: Random
  idempotency: Idempotency
}

/**
 * Returns the dependencies of a command by the request's caller. With `command`, repeats derive the same ids and
 * secrets.
 */
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

interface FoundCommand {
  row: StoredCommand
  secrets: CommandSecrets
  response: StoredResponse | null
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
  function secretsOf({ masterKeyId, seed }: StoredCommand, key: CommandKey): CommandSecrets {
    const master = keyring.byId(masterKeyId)
    if (!master)
      throw unavailable(
        new Error('a command was started under a master key that this server does not have'),
      )
    return commandSecrets(master, { ...key, seed })
  }

  /**
   * Returns the command stored under the request's key. Throws 422 if the key was used for another request, and 409 if
   * the command is running.
   */
  async function lookUp(request: IdempotentRequest): Promise<FoundCommand | undefined> {
    const now = clock()
    const row = await findCommand(pool, { id: commandId(request), now })
    if (!row) return undefined
    const secrets = secretsOf(row, request)
    if (!row.requestMac.equals(secrets.mac(request.text))) throw keyReusedError()
    if (!row.answer && row.expiresAt > now) throw inFlightError()
    return { row, secrets, response: row.answer && secrets.open(row.answer) }
  }

  /** Takes the command's lease, or returns the stored response. Throws 409 for all but one of concurrent requests. */
  async function acquire(request: IdempotentRequest): Promise<Attempt | StoredResponse> {
    const command = await lookUp(request)
    if (command?.response) return command.response
    return command ? resumeCommand(commandId(request), command) : beginCommand(request)
  }

  async function beginCommand(request: IdempotentRequest): Promise<Attempt> {
    const [seed, now] = [random(16), clock()]
    const secrets = commandSecrets(keyring.current, { ...request, seed })
    const lease = { id: commandId(request), seed, owner: random(16) }
    const row = { masterKeyId: keyring.current.id, requestMac: secrets.mac(request.text) }
    if (!(await insertCommand(pool, { ...lease, ...row, now }))) throw inFlightError()
    return { lease, secrets, createdAt: now }
  }

  async function resumeCommand(id: Buffer, { row, secrets }: FoundCommand): Promise<Attempt> {
    const lease = { id, seed: row.seed, owner: random(16) }
    if (!(await takeLease(pool, { ...lease, now: clock() }))) throw inFlightError()
    return { lease, secrets, createdAt: row.createdAt }
  }

  return {
    async run(options, work) {
      const { reply } = options
      const request = identifyRequest(options)
      if (!request) return send(reply, serialize(await work({ random, now: clock() })))
      reply.header('cache-control', 'no-store')
      const acquired = await acquire(request)
      if (!('lease' in acquired)) return sendReplay(reply, acquired)
      return send(reply, await runAttempt({ pool, random, logger }, acquired, work))
    },
    async replay(options) {
      const request = identifyRequest(options)
      const command = request && (await lookUp(request))
      if (command?.response) sendReplay(options.reply, command.response)
      return Boolean(command?.response)
    },
  }
}

type Work = (command: Command) => Promise<CommandResponse>

/** Runs the command and stores its response if it is a success. Throws what `work` throws. */
async function runAttempt(
  { pool, random, logger }: Pick<IdempotencyOptions, 'pool' | 'random' | 'logger'>,
  { lease, secrets, createdAt }: Attempt,
  work: Work,
): Promise<StoredResponse> {
  // Best effort: the lease expires anyway, and a failure to release it must not hide the original error.
  const afterFailure = async (status: number) => {
    const end = status < 500 ? forgetCommand : releaseLease
    await end(pool, lease).catch((err) =>
      logger.warn({ err }, 'failed to release idempotency lease'),
    )
  }
  let response: StoredResponse
  try {
    response = serialize(await work({ random: secrets.random, now: createdAt }))
  } catch (error) {
    await afterFailure(toApiError(error).status)
    throw error
  }
  if (response.status >= 300) {
    await afterFailure(response.status)
    return response
  }
  try {
    const stored = await storeResponse(pool, { ...lease, response: secrets.seal(response, random) })
    return stored ? secrets.open(stored) : response
  } catch (err) {
    // The command took effect, so the caller gets the response. A repeat runs again and finds the effect.
    logger.warn({ err }, 'failed to store idempotent response')
    return response
  }
}

const serialize = ({ status, body }: CommandResponse): StoredResponse => ({
  status,
  text: JSON.stringify(body),
})

function send(reply: FastifyReply, { status, text }: StoredResponse): FastifyReply {
  return reply.code(status).type('application/json; charset=utf-8').send(text)
}

function sendReplay(reply: FastifyReply, response: StoredResponse): FastifyReply {
  return send(reply.header('idempotent-replayed', 'true'), response)
}

interface IdempotentRequest extends CommandKey {
  text: string
}

function identifyRequest({ request, scope, requester }: RunOptions): IdempotentRequest | undefined {
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
