import type { FastifyRequest } from 'fastify'
import type pg from 'pg'
import type { Auth } from '../../infra/access/auth.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { AppliedOffsets } from '../../infra/event-store/applied.ts'
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

/** Reader of what a domain publishes. Neither function rejects. */
export interface DomainReader {
  txtRecords(name: string): Promise<string[]>
  /** Returns the body of an https URL; undefined without a 200. */
  fileAt(url: string): Promise<string | undefined>
}

interface OrganizationSignup {
  gateSessionId: GateSessionId
  accountName: string
  /** Epoch milliseconds. The organization's id is derived from it, so a retried signup gets the same organization. */
  startedAt: number
  /** Holds until another process has provided the account. */
  stillNeeded: DecisionGuard
}

interface SignedUpOrganization {
  /** Environment variables by name, with newly issued keys. */
  outputs: Record<string, string>
  /** Holds until a retry has replaced the keys. */
  isCurrent: DecisionGuard
}

export interface GateOptions {
  /** Base URL without a trailing slash. */
  publicUrl: string
  /** Pool of commands. Slow searches use another one. */
  pool: pg.Pool
  applied: AppliedOffsets
  log: Pick<EventLog, 'endPositions'>
  decideAs: DecideAs
  keyring: Keyring
  clock: Clock
  random: Random
  logger: Logger
  /** Duration of an approval's lease: other processes take it over this long after its process died. */
  leaseMs: number
  integratorTimeoutMs: number
  directCalls: DirectCalls
  endCalls?: () => Promise<void>
  meter?: GateMeter | undefined
  consentKeys: ConsentKeys
  domainReader: DomainReader
  network: NetworkSource
  /**
   * Creates an organization, or finds the one that an earlier attempt created, and issues new keys. Returns undefined
   * if they are no longer needed.
   */
  signUpOrganization: (signup: OrganizationSignup) => Promise<SignedUpOrganization | undefined>
  /** Erases personal data in the session and all others of its account. Returns false if there is no such session. */
  eraseSession: (decide: Decide, gateSessionId: GateSessionId) => Promise<boolean>
  eraseSessions: (decide: Decide, sessions: ErasableSession[]) => Promise<void>
  /** Retention of the personal data of agents and people who approved. */
  retentionMs: number
}

export interface GateParts extends GateOptions {
  limits: GateLimits
  vault: Vault
  pages: Pages
}

/** Dependencies of commands. A repeated command has the same `random` and `idTime`, and so the same ids and tokens. */
export interface GateDeps extends GateParts {
  decide: Decide
  idTime?: number
}

export interface Approvals {
  /** Starts work on the approval, unless a process already works on it. */
  run(gateSessionId: GateSessionId): void
  /** Returns the session once it is no longer pending, or its state after `ms`. */
  outcome(gateSessionId: GateSessionId, ms: number): Promise<GateSessionRow | undefined>
  stop(): Promise<void>
}

export interface GateContext extends GateParts {
  approvals: Approvals
  auth: Auth
  idempotency: Idempotency
  /**
   * Runs `read` once Gate's read model has caught up, because a stale one would show revoked tokens as usable. ApiError
   * service.unavailable if it does not catch up in time.
   */
  readCurrent: <T>(read: () => Promise<T>) => Promise<T>
  depsOf(command: Command, decide: Decide): GateDeps
  /** Returns a `Decide` whose actor is the key of the request. */
  decideByKey(request: FastifyRequest): Decide
}
