import { type Auth, createAuth } from '../../infra/access/auth.ts'
import { createKeyUsage } from '../../infra/access/key-usage.ts'
import { createRateLimiter } from '../../infra/access/rate-limit/limiter.ts'
import { createPostgresStore, rateLimitPoolOptions } from '../../infra/access/rate-limit/postgres-store.ts'
import { createSourceBudget } from '../../infra/access/source-budget.ts'
import type { AuthCounters } from '../../infra/http/metrics.ts'
import { createIdempotency, type Idempotency } from '../../infra/idempotency/idempotency.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { findKeyByLookupHash } from '../../projections/organizations/queries.ts'
import { isConsentPageKey } from '../organizations/consent-keys.ts'
import type { Core } from './dependencies.ts'

export interface Edge {
  auth: Auth
  idempotency: Idempotency
}

export interface EdgeOptions {
  counters: AuthCounters
  undo: AsyncDisposableStack
}

/** For consent pages: one needs a few requests at first and one every other second; an office opens several at once. */
const consentPages = { perSecond: 10, burst: 300 }

/** Keys verified, units taken, uses noted, commands repeated safely: each once for the whole process. */
export function createEdge(core: Core, { counters, undo }: EdgeOptions): Edge {
  const { pool, config, applied } = core
  const usage = createKeyUsage(core)
  undo.defer(() => usage.close())
  const ofConsentPages = createSourceBudget({ clock: core.clock, ...consentPages })
  const auth = createAuth({
    ...core,
    findKey: (hashes) => findKeyByLookupHash(pool, hashes),
    limiter: createLimiter(core, undo),
    defaultLimits: { secret: config.RATE_LIMIT_SECRET, publishable: config.RATE_LIMIT_PUBLISHABLE },
    perSource: (principal) => (isConsentPageKey(principal) ? ofConsentPages : undefined),
    onKeyUsed: usage.note,
    ...counters,
  })
  // Where this is heard, a change of a key or its organization holds at once; elsewhere within the cache's 15 s.
  undo.defer(applied.onChange('organizations', auth.invalidate))
  return { auth, idempotency: createIdempotency(core) }
}

/** With connections of its own: a limit must not wait for commands that hold all others. */
function createLimiter({ databaseUrl, random, logger }: Core, undo: AsyncDisposableStack) {
  const pool = createPool({ url: databaseUrl, ...rateLimitPoolOptions })
  undo.defer(() => pool.end())
  const limiter = createRateLimiter({ store: createPostgresStore(pool, { logger }), random, logger })
  undo.defer(() => limiter.close())
  return limiter
}
