import type { FastifyRequest } from 'fastify'
import type pg from 'pg'
import type { Auth } from '../../infra/access/auth.ts'
import type { Config } from '../../infra/config.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { DecideAs } from '../../infra/event-store/decide.ts'
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
  decideAs: DecideAs
  auth: Auth
  keyring: Keyring
  clock: Clock
  random: Random
  idempotency: Idempotency
}

export interface WebhookContext extends WebhookOptions {
  rules: AddressRules
  /** With `command` ids and secrets are the same whenever it is repeated. */
  depsOf(request: FastifyRequest, command?: Command): EndpointDeps
  scopeOf(request: FastifyRequest): { organizationId: string; environment: Environment }
}

export function webhookContext(options: WebhookOptions): WebhookContext {
  const { config, decideAs, keyring, clock, auth } = options
  const rules = createAddressRules(config.WEBHOOK_ALLOWED_NETWORKS)
  return {
    ...options,
    rules,
    depsOf(request, command) {
      const decide = decideAs(auth.actor(request), request)
      const { random, now: idTime } = command ?? { random: options.random, now: clock() }
      return { decide, keyring, clock, random, idTime, rules }
    },
    scopeOf(request) {
      // That of the path: a key gets here only when it is the same.
      const { organizationId, environment } = auth.secret(request)
      return { organizationId, environment }
    },
  }
}
