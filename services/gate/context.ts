import type { FastifyRequest } from 'fastify'
import type pg from 'pg'
import type { Auth } from '../../infra/access/auth.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { Applied } from '../../infra/event-store/applied.ts'
import type { CommandDeps, Decide } from '../../infra/event-store/decide.ts'
import type { Command, Idempotency } from '../../infra/idempotency/idempotency.ts'
import type { Clock, GateSessionId, Random } from '../../infra/ids.ts'
import type { NetworkSource } from '../../infra/ip/network.ts'
import type { EventLog } from '../../infra/log/port.ts'
import type { Logger } from '../../infra/telemetry.ts'
import type { DirectCalls } from '../../infra/wire/webhooks/direct-call.ts'
import type { GateSessionRow } from '../../projections/gate/tables.ts'
import type { Environment } from '../../schemas/events.ts'
import type { GateLimits } from './limits.ts'
import type { GateMeter } from './metrics.ts'
import type { Pages, Vault } from './store.ts'

export interface ConsentKeys {
  publishableKey(): Promise<string>
  /** SHA-256 (lower-case hex) of the secret keys that open the page's sealed tokens. */
  secretHashes(): Promise<string[]>
}

interface OrganizationSignup {
  gateSessionId: GateSessionId
  accountName: string
  /** The same when the signup is repeated, so that its keys are, too. */
  random: Random
  now: number
}

export interface GateOptions {
  /** Without a slash at its end. */
  publicUrl: string
  /** The pool of commands: slow searches have another. */
  pool: pg.Pool
  applied: Applied
  log: Pick<EventLog, 'endPositions'>
  decide: Decide
  keyring: Keyring
  clock: Clock
  random: Random
  logger: Logger
  /** How long an approval stays hidden from other processes after its process died. */
  visibilityTimeoutMs: number
  integratorTimeoutMs: number
  directCalls: DirectCalls
  endCalls?: () => Promise<void>
  meter?: GateMeter | undefined
  consentKeys: ConsentKeys
  network: NetworkSource
  /** Makes an organization with its keys. Resolves to environment variables by name. */
  signUpOrganization: (signup: OrganizationSignup) => Promise<Record<string, string>>
}

export interface Approvals {
  /** Works on the approval, unless some process does already. */
  run(gateSessionId: GateSessionId): void
  /** The session once it is not pending any more, or as it is after `ms`. */
  outcome(gateSessionId: GateSessionId, ms: number): Promise<GateSessionRow | undefined>
  stop(): Promise<void>
}

/**
 * Resolves to what `read` does, once the read model of Gate is caught up. ApiError service.unavailable until then: a
 * stale one would show revoked tokens as usable.
 */
export type ReadCurrent = <T>(read: () => Promise<T>) => Promise<T>

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
  /** Its ids and tokens are the same whenever the command is repeated. */
  depsOf(command: Command): CommandDeps
  scopeOf(request: FastifyRequest): { organizationId: string; environment: Environment }
}
