import type { FastifyInstance, FastifyRequest } from 'fastify'
import type pg from 'pg'
import type { Auth } from '../../infra/access/auth.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { Decide } from '../../infra/event-store/decide.ts'
import { type Cursors, createCursors } from '../../infra/http/pagination.ts'
import type { Clock, Random } from '../../infra/ids.ts'
import type { Scope } from '../../projections/sessions/queries.ts'
import { fingerprintRoutes } from './fingerprints.ts'
import { sessionRoutes } from './sessions.ts'

export interface ReadbackOptions {
  pool: pg.Pool
  decide: Decide
  auth: Auth
  keyring: Keyring
  clock: Clock
  random: Random
}

export interface ReadbackContext extends ReadbackOptions {
  cursors: Cursors
  /** Whose data the request may see. */
  scopeOf(request: FastifyRequest): Scope
}

/** `GET /v1/sessions`, `GET` and `PATCH /v1/sessions/{sessionId}`, `GET /v1/fingerprints`, `GET /v1/fingerprints/{visitorId}`. */
export function readbackRoutes(app: FastifyInstance, options: ReadbackOptions): void {
  const context: ReadbackContext = {
    ...options,
    cursors: createCursors(options),
    scopeOf(request) {
      const { organizationId, environment } = options.auth.secret(request)
      return { organizationId, environment }
    },
  }
  sessionRoutes(app, context)
  fingerprintRoutes(app, context)
}
