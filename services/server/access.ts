import { createAuth, type KeyAuth } from '../../infra/access/auth.ts'
import { createBudget } from '../../infra/access/budget.ts'
import { createRequestMeter, type RequestMeter } from '../../infra/access/charge.ts'
import { createKeyUsageBuffer } from '../../infra/access/key-usage.ts'
import { createRateLimiter } from '../../infra/access/rate-limit/limiter.ts'
import {
  createPostgresBucketStore,
  rateLimitPoolOptions,
} from '../../infra/access/rate-limit/postgres-store.ts'
import type { AuthCounters } from '../../infra/http/metrics.ts'
import { createIdempotency, type Idempotency } from '../../infra/idempotency/idempotency.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { findKeyByLookupHash } from '../../projections/organizations/queries.ts'
import { isConsentPageKey } from '../organizations/consent-keys.ts'
import type { Core } from './dependencies.ts'

export type AccessControl = ReturnType<typeof createAccessControl>

// A consent page makes a few requests at first, then one every two seconds. An address may open several pages.
const consentPageRate = { perSecond: 10, burst: 300 }

export function createAccessControl(
  core: Core,
  { counters, undo }: { counters: AuthCounters; undo: AsyncDisposableStack },
): { auth: KeyAuth; idempotency: Idempotency; consoleMeter: RequestMeter } {
  const { pool, config, applied } = core
  const usage = createKeyUsageBuffer(core)
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
  // Changes take effect at once if the notification arrives, else when the cache expires after 15 seconds.
  undo.defer(applied.onChange('organizations', auth.invalidate))
  undo.defer(applied.onChange('policies', auth.invalidate))
  const consoleMeter = createRequestMeter({
    clock: core.clock,
    limiter,
    defaultLimits,
    ...counters,
  })
  return { auth, idempotency: createIdempotency(core), consoleMeter }
}

// Uses a separate pool, so that rate limiting does not wait for commands.
function createLimiter({ databaseUrl }: Core, undo: AsyncDisposableStack) {
  const pool = createPool({ url: databaseUrl, ...rateLimitPoolOptions })
  undo.defer(() => pool.end())
  const limiter = createRateLimiter({ store: createPostgresBucketStore(pool) })
  undo.defer(() => limiter.close())
  return limiter
}
