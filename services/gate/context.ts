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

/** Reads DNS records and files of a domain. Neither function rejects. */
export interface DomainReader {
  lookUpTxt(name: string): Promise<string[]>
  /** Returns the body of an https URL; undefined without a 200. */
  fileAt(url: string): Promise<string | undefined>
}

interface OrganizationSignup {
  gateSessionId: GateSessionId
  accountName: string
  /** Epoch milliseconds. The organization's id is derived from it, so a retried signup gets the same organization. */
  startedAt: number
  /** Fails once another process has provided the account. */
  issueGuard: DecisionGuard
}

interface SignedUpOrganization {
  /** Environment variables by name, with newly issued keys. */
  outputs: Record<string, string>
  /** Fails once a retry has replaced the keys. */
  keysGuard: DecisionGuard
}

export interface GateOptions {
  /** Base URL without a trailing slash. */
  publicUrl: string
  /** Pool for commands, separate from the pool for slow searches. */
  pool: pg.Pool
  applied: AppliedOffsets
  log: Pick<EventLog, 'endPositions'>
  decideAs: DecideAs
  keyring: Keyring
  clock: Clock
  random: Random
  logger: Logger
  /** Lease duration of an approval, milliseconds. Another process can take over once the lease has expired. */
  leaseMs: number
  integratorTimeoutMs: number
  directCalls: DirectCalls
  closeWebhookClient?: () => Promise<void>
  meter?: GateMeter | undefined
  consentKeys: ConsentKeys
  domainReader: DomainReader
  network: NetworkSource
  /**
   * Creates an organization with new keys; a retry finds the organization and replaces its keys. Returns undefined if
   * `issueGuard` no longer holds.
   */
  signUpOrganization: (signup: OrganizationSignup) => Promise<SignedUpOrganization | undefined>
  /** Erases personal data in all sessions of the session's account. Returns false if the session does not exist. */
  eraseSession: (decide: Decide, gateSessionId: GateSessionId) => Promise<boolean>
  eraseSessions: (decide: Decide, sessions: ErasableSession[]) => Promise<void>
  /** Time after which personal data of ended sessions is erased. */
  retentionMs: number
}

export interface GateParts extends GateOptions {
  /** Rate limits of requests. */
  limits: GateLimits
  /** Data keys of credentials that wait for an agent. */
  vault: Vault
  /** Open consent pages. */
  pages: Pages
}

/** Dependencies of commands. A repeated command gets the same `random` and `idTime`, so it generates the same ids. */
export interface GateDeps extends GateParts {
  decide: Decide
  /** Epoch milliseconds encoded in new ids. Default: the time of the command. */
  idTime?: number
}

export interface Approvals {
  /** Starts work on the approval, unless a process already works on it. */
  startIfIdle(gateSessionId: GateSessionId): void
  /** Returns the session as soon as it is no longer pending, or as it is after `ms`. */
  waitForOutcome(gateSessionId: GateSessionId, ms: number): Promise<GateSessionRow | undefined>
  stop(): Promise<void>
}

export interface GateContext extends GateParts {
  /** Work on started approvals in this process. */
  approvals: Approvals
  /** Authenticates the API keys of requests. */
  auth: Auth
  /** Answers a repeated POST with the stored response. */
  idempotency: Idempotency
  /**
   * Runs `read` once Gate's read model has caught up, because a stale one would show revoked tokens as usable. Throws
   * 503 `service.unavailable` if it does not catch up in time.
   */
  readFresh: <T>(read: () => Promise<T>) => Promise<T>
  /** Returns the dependencies of a command that may be repeated, with its `random` and time (see `GateDeps`). */
  depsOf(command: Command, decide: Decide): GateDeps
  /** Returns a `Decide` whose actor is the API key of the request. */
  decideAsCaller(request: FastifyRequest): Decide
}

/** Dependencies of the routes that manage services and accounts, with API keys and in the console. */
export type GateManagement = Pick<
  GateContext,
  'auth' | 'clock' | 'decideAsCaller' | 'keyring' | 'pool' | 'readFresh'
>
