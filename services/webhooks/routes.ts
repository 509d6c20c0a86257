import type { FastifyInstance, FastifyRequest } from 'fastify'
import type pg from 'pg'
import type { Auth } from '../../infra/access/auth.ts'
import type { Config } from '../../infra/config.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { Decide } from '../../infra/event-store/decide.ts'
import type { Command, Idempotency } from '../../infra/idempotency/idempotency.ts'
import type { Clock, Random } from '../../infra/ids.ts'
import { type AddressRules, createAddressRules } from '../../infra/safe-http/addresses.ts'
import type { Environment } from '../../schemas/events.ts'
import { describeDeliveries } from './deliveries/described.ts'
import type { EndpointDeps } from './endpoints/endpoint-commands.ts'
import { endpointRoutes } from './endpoints/endpoint-routes.ts'
import { oneEndpointRoutes } from './endpoints/one-endpoint-routes.ts'
import { eventRoutes } from './events/event-routes.ts'

export interface WebhookOptions {
  config: Pick<Config, 'WEBHOOK_ALLOWED_NETWORKS'>
  /** The one that decisions use: a new secret is shown once, and its answer must not wait behind slow searches. */
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
  /** What makes a command the same whenever it is repeated, but for when it happens. */
  depsOf(command: Command): EndpointDeps
  /** Whose endpoints and events the key sees. */
  scopeOf(request: FastifyRequest): { organizationId: string; environment: Environment }
}

/** `/v1/organizations/{organizationId}/webhooks/endpoints` and `.../events`, and what endpoints are sent. */
export function webhookRoutes(app: FastifyInstance, options: WebhookOptions): void {
  const { config, decide, keyring, clock, auth } = options
  const rules = createAddressRules(config.WEBHOOK_ALLOWED_NETWORKS)
  const context: WebhookContext = {
    ...options,
    rules,
    depsOf: ({ random, now }) => ({ decide, keyring, clock, random, idTime: now, rules }),
    scopeOf(request) {
      // That of the path: a key gets here only when it is the same.
      const { organizationId, environment } = auth.secret(request)
      return { organizationId, environment }
    },
  }
  endpointRoutes(app, context)
  oneEndpointRoutes(app, context)
  eventRoutes(app, context)
  describeDeliveries(app)
}
