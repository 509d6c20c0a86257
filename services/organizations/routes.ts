import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import type { Auth } from '../../infra/access/auth.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { CommandDeps } from '../../infra/event-store/command-deps.ts'
import type { Decide } from '../../infra/event-store/decide.ts'
import { type Cursors, createCursors } from '../../infra/http/pagination.ts'
import type { Command, Idempotency } from '../../infra/idempotency/idempotency.ts'
import type { Clock, Random } from '../../infra/ids.ts'
import { keyRoutes } from './key-routes.ts'
import { oneKeyRoutes } from './one-key-routes.ts'
import { organizationRoutes as ownRoutes } from './organization-routes.ts'

export interface OrganizationOptions {
  /**
   * The one that decisions use: a new secret is shown once, and its answer must not wait behind slow searches. The
   * tables of `createKeyUsageTables` are in it.
   */
  pool: pg.Pool
  decide: Decide
  auth: Auth
  keyring: Keyring
  clock: Clock
  random: Random
  idempotency: Idempotency
}

export interface OrganizationContext extends OrganizationOptions {
  cursors: Cursors
  /** What makes a command the same whenever it is repeated, but for when it happens. */
  depsOf(command: Command): CommandDeps
}

/** `/v1/organizations`, `/v1/organizations/{organizationId}`, and its API keys below `/api-keys`. */
export function organizationRoutes(app: FastifyInstance, options: OrganizationOptions): void {
  const { decide, keyring, clock } = options
  const context: OrganizationContext = {
    ...options,
    cursors: createCursors(options),
    depsOf: ({ random, now }) => ({ decide, keyring, clock, random, idTime: now }),
  }
  ownRoutes(app, context)
  keyRoutes(app, context)
  oneKeyRoutes(app, context)
}
