import { randomBytes } from 'node:crypto'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { createDecide } from '../../../../infra/decide.ts'
import { createApp } from '../../../../infra/http/app.ts'
import { createAuth } from '../../../../infra/http/auth.ts'
import {
  type Command,
  createIdempotency,
  createIdempotencyTables,
} from '../../../../infra/http/idempotency.ts'
import { openPostgresLog } from '../../../../infra/log/postgres/log.ts'
import { transaction } from '../../../../infra/postgres/pool.ts'
import { createAddressRules } from '../../../../infra/webhooks/address-rules.ts'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { findKeyByLookupHash } from '../../../../projections/organizations/key-queries.ts'
import { organizationsProjection } from '../../../../projections/organizations/projection.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import { oneServiceRoutes } from '../../../../services/gate/registry/one-service-routes.ts'
import { registryRoutes } from '../../../../services/gate/registry/registry-routes.ts'
import { serviceRoutes } from '../../../../services/gate/registry/service-routes.ts'
import { validateResponses } from '../../../support/described.ts'
import { createMemoryLimiter } from '../../../support/memory-limiter.ts'
import { ensureTopics, openProjectionWorld, silent } from '../../../support/projections.ts'

export interface Send {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  url: string
  key?: string
  body?: unknown
  headers?: Record<string, string>
}

export const publicUrl = 'https://tidegate.example'

/** The routes of registry and services over the real log, read models, authentication and idempotency. */
export async function startServices() {
  const world = await openProjectionWorld()
  const { pool, url } = world.database
  await transaction(pool, createIdempotencyTables)
  const log = await openPostgresLog({ pool, url, logger: silent })
  await ensureTopics(log)
  const applied = await world.openApplied()
  for (const projection of [organizationsProjection, webhooksProjection, gateProjection])
    await world.run(log, projection, { applied })
  const now = { ms: 1_760_000_000_000 }
  const clock = () => now.ms
  const keyring = createKeyring(randomBytes(32).toString('base64'))
  const base = { pool, keyring, clock, random: randomBytes, logger: silent }
  const findKey = (hashes: string[]) => findKeyByLookupHash(pool, hashes)
  const auth = createAuth({ ...base, findKey, limiter: createMemoryLimiter(clock) })
  applied.onChange('organizations', auth.invalidate)
  const decide = createDecide({ pool, log, codec: world.codec, applied, timeoutMs: 30_000 })
  const app = await createApp({ ...base, publicUrl })
  validateResponses(app)
  const context = {
    ...base,
    publicUrl,
    decide,
    auth,
    idempotency: createIdempotency(base),
    depsOf: ({ random, now }: Command) => ({ ...base, decide, random, idTime: now }),
    scopeOf(request: Parameters<typeof auth.secret>[0]) {
      const { organizationId, environment } = auth.secret(request)
      return { organizationId, environment }
    },
  }
  for (const add of [registryRoutes, serviceRoutes, oneServiceRoutes]) add(app, context)

  async function send({ method = 'GET', url, key, body, headers = {} }: Send) {
    const response = await app.inject({
      method,
      url,
      headers: {
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { payload: JSON.stringify(body) }),
    })
    return { status: response.statusCode, body: response.json() }
  }

  return {
    pool,
    now,
    deps: { ...base, decide, rules: createAddressRules([]) },
    send,
    /** As when the process died before it stored them. */
    loseAnswers: () => pool.query('update tidegate.idempotency_keys set answer = null, locked_until = 0'),
    async stop() {
      await app.close()
      await world.stopRunners()
      await log.close()
      await world.close()
    },
  }
}

export type Services = Awaited<ReturnType<typeof startServices>>
