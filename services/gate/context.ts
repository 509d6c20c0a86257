import type { FastifyRequest } from 'fastify'
import type pg from 'pg'
import type { Auth } from '../../infra/access/auth.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { Applied } from '../../infra/event-store/applied.ts'
import type { CommandDeps, Decide } from '../../infra/event-store/decide.ts'
import type { Command, Idempotency } from '../../infra/idempotency/idempotency.ts'
import type { Clock, GateSessionId, Random } from '../../infra/ids.ts'
import type { EventLog } from '../../infra/log/port.ts'
import type { Logger } from '../../infra/telemetry.ts'
import type { DirectCalls } from '../../infra/wire/webhooks/direct-call.ts'
import type { GateSessionRow } from '../../projections/gate/tables.ts'
import type { Environment } from '../../schemas/events.ts'
import type { GateLimits } from './limits.ts'
import type { GateMeter } from './metrics.ts'
import type { Pages, Vault } from './store.ts'

/** The keys that the consent page is scored with. */
export interface ConsentKeys {
  /** For the SDK on the page; only that page's origin may use it. */
  publishableKey(): Promise<string>
  /** SHA-256 (lower-case hex) of the secret keys that open the page's sealed tokens. */
  secretHashes(): Promise<string[]>
}

/** A signup for this very server. */
interface OrganizationSignup {
  gateSessionId: GateSessionId
  accountName: string
  /** The same when it is repeated, and so are the keys. */
  random: Random
  /** Epoch milliseconds; the same, too. */
  now: number
}

export interface GateOptions {
  /** Where clients reach this server, without a slash at its end. */
  publicUrl: string
  /** The one that decisions use: what is answered once must not wait behind slow searches. */
  pool: pg.Pool
  applied: Applied
  log: Pick<EventLog, 'endPositions'>
  decide: Decide
  keyring: Keyring
  clock: Clock
  random: Random
  logger: Logger
  /** How long an approval that a killed process was working on is left alone, in milliseconds. */
  visibilityTimeoutMs: number
  /** How long an integrator may take for one answer, in milliseconds. */
  integratorTimeoutMs: number
  directCalls: DirectCalls
  /** Ends calls that are under way when everything else has stopped, and their connections. */
  endCalls?: () => Promise<void>
  /** Without one approvals are not counted. */
  meter?: GateMeter | undefined
  consentKeys: ConsentKeys
  /** Makes an organization with its keys; environment variables for the one who signed up, by name. */
  signUpOrganization: (signup: OrganizationSignup) => Promise<Record<string, string>>
}

/** The approvals of signups that have started and not ended, in whichever process they started. */
export interface Approvals {
  /** Works on the approval from now on, unless somebody does already. */
  run(gateSessionId: GateSessionId): void
  /** The session once it is not pending any more, or as it is after so many milliseconds. */
  outcome(gateSessionId: GateSessionId, ms: number): Promise<GateSessionRow | undefined>
  /** Leaves what cannot be ended at once to other processes. */
  stop(): Promise<void>
}

/**
 * What `read` says of tokens and codes, once the read model of Gate shows all that it once showed. While it is filled
 * again, or has lost its last commits, revoked tokens would be good and good ones unknown: ApiError service.unavailable.
 */
export type ReadCurrent = <T>(read: () => Promise<T>) => Promise<T>

/** What routes and workers of Gate share. */
export interface GateParts extends GateOptions {
  limits: GateLimits
  vault: Vault
  pages: Pages
  approvals: Approvals
}

export interface GateContext extends GateParts {
  auth: Auth
  idempotency: Idempotency
  readCurrent: ReadCurrent
  /** What makes a command the same whenever it is repeated, but for when it happens. */
  depsOf(command: Command): CommandDeps
  /** Whose services, tokens and codes the key sees. */
  scopeOf(request: FastifyRequest): { organizationId: string; environment: Environment }
}
