import type { FastifyRequest } from 'fastify'
import type pg from 'pg'
import type { Auth } from '../../infra/access/auth.ts'
import type { Config } from '../../infra/config.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { Decide } from '../../infra/event-store/decide.ts'
import type { Command, Idempotency } from '../../infra/idempotency/idempotency.ts'
import type { Clock, Random } from '../../infra/ids.ts'
import { type AddressRules, createAddressRules } from '../../infra/safe-http/addresses.ts'
import type { Environment } from '../../schemas/events.ts'
import type { EndpointDeps } from './endpoints/commands.ts'

export interface WebhookOptions {
  config: Pick<Config, 'WEBHOOK_ALLOWED_NETWORKS'>
  /** The pool of decisions: a new secret is shown once, and its answer must not wait behind slow searches. */
  pool: pg.Pool
  readPool: pg.Pool
  decide: Decide
  auth: Auth
  keyring: Keyring
  clock: Clock
  random: Random
  idempotency: Idempotency
}

export interface WebhookContext extends WebhookOptions {
  rules: AddressRules
  depsOf(command: Command): EndpointDeps
  scopeOf(request: FastifyRequest): { organizationId: string; environment: Environment }
}

export function webhookContext(options: WebhookOptions): WebhookContext {
  const { config, decide, keyring, clock, auth } = options
  const rules = createAddressRules(config.WEBHOOK_ALLOWED_NETWORKS)
  return {
    ...options,
    rules,
    depsOf: ({ random, now }) => ({ decide, keyring, clock, random, idTime: now, rules }),
    scopeOf(request) {
      // That of the path: a key gets here only when it is the same.
      const { organizationId, environment } = auth.secret(request)
      return { organizationId, environment }
    },
  }
}
