import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { Decide } from '../../infra/decide.ts'
import type { Auth } from '../../infra/http/auth.ts'
import type { Idempotency } from '../../infra/http/idempotency.ts'
import type { Clock, Random } from '../../infra/ids.ts'

export interface WebhookOptions {
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

/** `/v1/organizations/{organizationId}/webhooks/endpoints` and `.../events`. */
export function webhookRoutes(_app: FastifyInstance, _options: WebhookOptions): void {}
