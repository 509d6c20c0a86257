import { createAuth, type KeyAuth } from '../../infra/access/auth.ts'
import { createBudget } from '../../infra/access/budget.ts'
import { type Charges, createCharges } from '../../infra/access/charge.ts'
import { createKeyUsage } from '../../infra/access/key-usage.ts'
import { createRateLimiter } from '../../infra/access/rate-limit/limiter.ts'
import {
  createPostgresStore,
  rateLimitPoolOptions,
} from '../../infra/access/rate-limit/postgres-store.ts'
import type { AuthCounters } from '../../infra/http/metrics.ts'
import { createIdempotency, type Idempotency } from '../../infra/idempotency/idempotency.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { findKeyByLookupHash } from '../../projections/organizations/queries.ts'
import { isConsentPageKey } from '../organizations/consent-keys.ts'
import type { Core } from './dependencies.ts'

export type AccessControl = ReturnType<typeof createAccessControl>

// A consent page makes a few requests at first and then one every two seconds. One address may open several pages.
const consentPageRate = { perSecond: 10, burst: 300 }

export function createAccessControl(
  core: Core,
  { counters, undo }: { counters: AuthCounters; undo: AsyncDisposableStack },
): { auth: KeyAuth; idempotency: Idempotency; personCharges: Charges } {
  const { pool, config, applied } = core
  const usage = createKeyUsage(core)
  undo.defer(() => usage.close())
  const consentPageBudget = createBudget({ clock: core.clock, ...consentPageRate })
  const limiter = createLimiter(core, undo)
  const defaultLimits = {
    secret: config.RATE_LIMIT_SECRET,
    publishable: config.RATE_LIMIT_PUBLISHABLE,
    requests: config.RATE_LIMIT_REQUESTS,
    person: config.RATE_LIMIT_CONSOLE,
  }
  const auth = createAuth({
    ...core,
    findKey: (hashes) => findKeyByLookupHash(pool, hashes),
    limiter,
    defaultLimits,
    perSourceBudget: (principal) => (isConsentPageKey(principal) ? consentPageBudget : undefined),
    onKeyUsed: usage.recordUse,
    ...counters,
  })
  // Changes of keys and organizations take effect at once if the notification arrives, else when the cache expires (15
  // s).
  undo.defer(applied.onChange('organizations', auth.invalidate))
  undo.defer(applied.onChange('policies', auth.invalidate))
  const personCharges = createCharges({ clock: core.clock, limiter, defaultLimits, ...counters })
  return { auth, idempotency: createIdempotency(core), personCharges }
}

// The limiter has a separate pool, so that it does not wait for commands.
function createLimiter({ databaseUrl }: Core, undo: AsyncDisposableStack) {
  const pool = createPool({ url: databaseUrl, ...rateLimitPoolOptions })
  undo.defer(() => pool.end())
  const limiter = createRateLimiter({ store: createPostgresStore(pool) })
  undo.defer(() => limiter.close())
  return limiter
}
