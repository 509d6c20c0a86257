import { createAuth } from '../infra/access/auth.ts'
import type { KeyRecord } from '../infra/access/principal.ts'
import { createRateLimiter } from '../infra/access/rate-limit/limiter.ts'
import {
  createPostgresBucketStore,
  rateLimitMigrations,
  rateLimitPoolOptions,
} from '../infra/access/rate-limit/postgres-store.ts'
import { readConfig } from '../infra/config.ts'
import { lookupHashes } from '../infra/crypto/api-keys.ts'
import { createKeyring } from '../infra/crypto/keyring.ts'
import { asId } from '../infra/ids.ts'
import { runMigrations } from '../infra/postgres/migrations.ts'
import { createPool, transaction } from '../infra/postgres/pool.ts'
import { addAppend, openFloor } from './floor-app.ts'

// The floor's append, with and without the key and rate-limit checks of a collect endpoint, in the same process so that
// only the hook differs.
const config = readConfig(process.env)
const { app, log, url, serve } = await openFloor(config)
const key = process.env.GUARDED_KEY ?? ''
const keyring = createKeyring(config.TIDEGATE_MASTER_KEYS ?? '')
const record: KeyRecord = {
  principal: {
    type: 'publishable',
    keyId: asId('key', `key_${'1'.repeat(26)}`),
    organizationId: asId('org', `org_${'1'.repeat(26)}`),
    environment: 'live',
    clientTarget: 'browser',
    allowedOrigins: [],
    shortensAddresses: false,
    // About the number of requests that a machine can send.
    rateLimit: 600_000,
  },
  status: 'active',
  endsAt: null,
  organizationStatus: 'active',
}
const [hash = ''] = lookupHashes(keyring, key)
const limitPool = createPool({ url, ...rateLimitPoolOptions })
await transaction(limitPool, (tx) => runMigrations(tx, [rateLimitMigrations]))
const limiter = createRateLimiter({
  store: createPostgresBucketStore(limitPool),
})
const auth = createAuth({
  findKey: async (hashes) => (hashes.includes(hash) ? record : undefined),
  keyring,
  clock: Date.now,
  limiter,
})
app.decorateRequest('principal', null)
addAppend(app, { path: '/append', log })
addAppend(app, { path: '/guarded', log, onRequest: auth.requirePublishable() })
await serve(async () => {
  await limiter.close()
  await limitPool.end()
})
