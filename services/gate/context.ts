import type { FastifyRequest } from 'fastify'
import type pg from 'pg'
import type { Auth } from '../../infra/access/auth.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { Applied } from '../../infra/event-store/applied.ts'
import type { Decide, DecideAs, DecisionGuard } from '../../infra/event-store/decide.ts'
import type { Command, Idempotency } from '../../infra/idempotency/idempotency.ts'
import type { Clock, GateSessionId, Random } from '../../infra/ids.ts'
import type { NetworkSource } from '../../infra/ip/network.ts'
import type { EventLog } from '../../infra/log/port.ts'
import type { Logger } from '../../infra/telemetry.ts'
import type { DirectCalls } from '../../infra/wire/webhooks/direct-call.ts'
import type { ErasableSession } from '../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../projections/gate/tables.ts'
import type { GateLimits } from './limits.ts'
import type { GateMeter } from './metrics.ts'
import type { Pages } from './store.ts'
import type { Vault } from './vault.ts'

export interface ConsentKeys {
  publishableKey(): Promise<string>
  /** SHA-256 (lower-case hex) of the secret keys that open the page's sealed tokens. */
  secretHashes(): Promise<string[]>
}

/** Reads what the holder of a domain has published there. Neither function rejects. */
export interface DomainReader {
  txtRecords(name: string): Promise<string[]>
  /** What is at an https URL; undefined without a 200. */
  fileAt(url: string): Promise<string | undefined>
}

interface OrganizationSignup {
  gateSessionId: GateSessionId
  accountName: string
  /** The same whenever the signup is repeated, so that the organization is the same, too. */
  startedAt: number
  /** Holds while nobody else has provided the account. */
  stillNeeded: DecisionGuard
}

interface SignedUpOrganization {
  /** Environment variables by name, with keys that nobody has had before. */
  outputs: Record<string, string>
  /** Holds while no repetition has replaced the keys. */
  isCurrent: DecisionGuard
}

export interface GateOptions {
  /** Without a slash at its end. */
  publicUrl: string
  /** The pool of commands: slow searches have another. */
  pool: pg.Pool
  applied: Applied
  log: Pick<EventLog, 'endPositions'>
  decideAs: DecideAs
  keyring: Keyring
  clock: Clock
  random: Random
  logger: Logger
  /** How long an approval stays hidden from other processes after its process died. */
  leaseMs: number
  integratorTimeoutMs: number
  directCalls: DirectCalls
  endCalls?: () => Promise<void>
  meter?: GateMeter | undefined
  consentKeys: ConsentKeys
  domainReader: DomainReader
  network: NetworkSource
  /**
   * Makes an organization, or finds the one that it made before, and issues its keys anew. undefined when they are not
   * needed any more.
   */
  signUpOrganization: (signup: OrganizationSignup) => Promise<SignedUpOrganization | undefined>
  /** Erases who requested and approved, in the session and in all others of its account. False without such a session. */
  eraseSession: (decide: Decide, gateSessionId: GateSessionId) => Promise<boolean>
  eraseSessions: (decide: Decide, sessions: ErasableSession[]) => Promise<void>
  /** How long it is known who requested and approved. */
  retentionMs: number
}

export interface GateParts extends GateOptions {
  limits: GateLimits
  vault: Vault
  pages: Pages
}

/** What commands work with. A repeated command has the same `random` and `idTime`, and so the same ids and tokens. */
export interface GateDeps extends GateParts {
  decide: Decide
  idTime?: number
}

export interface Approvals {
  /** Works on the approval, unless some process does already. */
  run(gateSessionId: GateSessionId): void
  /** The session once it is not pending any more, or as it is after `ms`. */
  outcome(gateSessionId: GateSessionId, ms: number): Promise<GateSessionRow | undefined>
  stop(): Promise<void>
}

export interface GateContext extends GateParts {
  approvals: Approvals
  auth: Auth
  idempotency: Idempotency
  /**
   * Resolves to what `read` does, once the read model of Gate is caught up. ApiError service.unavailable until then,
   * because a stale one would show revoked tokens as usable.
   */
  readCurrent: <T>(read: () => Promise<T>) => Promise<T>
  depsOf(command: Command, decide: Decide): GateDeps
  /** Decides as the key of the request. */
  decideByKey(request: FastifyRequest): Decide
}
