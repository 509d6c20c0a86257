import { randomBytes } from 'node:crypto'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { createDecide } from '../../../infra/decide.ts'
import { createApp } from '../../../infra/http/app.ts'
import { createAuth } from '../../../infra/http/auth.ts'
import { createIdempotency, createIdempotencyTables } from '../../../infra/http/idempotency.ts'
import { createKeyUsage, createKeyUsageTables } from '../../../infra/http/key-usage.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { findKeyByLookupHash } from '../../../projections/organizations/key-queries.ts'
import { organizationsProjection } from '../../../projections/organizations/projection.ts'
import { issueApiKey } from '../../../services/organizations/key-commands.ts'
import type { KeyRequest } from '../../../services/organizations/key-request.ts'
import { createOrganization } from '../../../services/organizations/organization-commands.ts'
import { organizationRoutes } from '../../../services/organizations/routes.ts'
import { validateResponses } from '../../support/described.ts'
import { ensureTopics, openProjectionWorld, silent } from '../../support/projections.ts'

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

export interface Send {
  method?: Method
  url: string
  key?: string
  body?: unknown
  headers?: Record<string, string>
}

/** The organization routes over the real log, read model, authentication and idempotency; the clock is the test's. */
export async function startOrganizations() {
  const world = await openProjectionWorld()
  const { pool, url } = world.database
  await transaction(pool, async (tx) => {
    await createIdempotencyTables(tx)
    await createKeyUsageTables(tx)
  })
  const log = await openPostgresLog({ pool, url, logger: silent })
  await ensureTopics(log)
  const applied = await world.openApplied()
  await world.run(log, organizationsProjection, { applied })
  const now = { ms: 1_760_000_000_000 }
  const clock = () => now.ms
  const keyring = createKeyring(randomBytes(32).toString('base64'))
  const base = { pool, keyring, clock, random: randomBytes, logger: silent }
  const usage = createKeyUsage(base)
  const findKey = (hashes: string[]) => findKeyByLookupHash(pool, hashes)
  const auth = createAuth({ ...base, findKey, onKeyUsed: usage.note })
  applied.onChange('organizations', auth.invalidate)
  const decide = createDecide({ pool, log, codec: world.codec, applied })
  const deps = { ...base, decide }
  const app = await createApp({ ...base, publicUrl: 'https://tidegate.example' })
  validateResponses(app)
  organizationRoutes(app, { ...deps, auth, idempotency: createIdempotency(base) })

  /** An organization with a secret key that may do everything. */
  async function organization(slug = `org-${randomBytes(4).toString('hex')}`) {
    const { organizationId } = await createOrganization(deps, { name: 'Acme', slug })
    const owner = await issue({ organizationId, name: 'Owner', type: 'secret', scopes: ['*'] })
    const { keyId: ownerId, revealedKey: key } = owner
    return { organizationId, ownerId, key, path: `/v1/organizations/${organizationId}` }
  }

  function issue(request: Partial<KeyRequest> & { organizationId: string }) {
    return issueApiKey(deps, { name: 'Key', environment: 'live', ...request })
  }

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
    return { status: response.statusCode, headers: response.headers, body: response.json() }
  }

  return {
    app,
    pool,
    log,
    now,
    deps,
    usage,
    organization,
    issue,
    send,
    async stop() {
      await app.close()
      await usage.close()
      await world.stopRunners()
      await log.close()
      await world.close()
    },
  }
}

export type Organizations = Awaited<ReturnType<typeof startOrganizations>>
