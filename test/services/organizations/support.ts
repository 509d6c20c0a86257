import { randomBytes } from 'node:crypto'
import { createKeyUsage } from '../../../infra/access/key-usage.ts'
import type { RateLimiter } from '../../../infra/access/rate-limit/limiter.ts'
import { organizationsProjection } from '../../../projections/organizations/projection.ts'
import { policiesProjection } from '../../../projections/policies/projection.ts'
import type { KeyRequest } from '../../../services/organizations/checked-input.ts'
import { createOrganization, issueApiKey } from '../../../services/organizations/commands.ts'
import { organizationRoutes } from '../../../services/organizations/routes.ts'
import { createServiceApp } from '../../support/service-app.ts'
import { openServiceWorld } from '../../support/service-world.ts'

/** The organization routes over the real log, read model, authentication and idempotency; the clock is the test's. */
export async function startOrganizations({ limiter }: { limiter?: RateLimiter } = {}) {
  const world = await openServiceWorld({
    projections: [organizationsProjection, policiesProjection],
  })
  const { base, deps } = world
  const usage = createKeyUsage(base)
  const auth = { onKeyUsed: usage.note, limiter }
  const { app, context, send } = await createServiceApp(world, { auth })
  organizationRoutes(app, context)

  /** An organization with a secret key that may do everything. */
  async function organization(slug = `org-${randomBytes(4).toString('hex')}`) {
    const { organizationId } = await createOrganization(deps, { name: 'Acme', slug })
    const owner = await issue({ organizationId, name: 'Owner', type: 'secret', scopes: ['*'] })
    const { keyId: ownerId, revealedKey: key } = owner
    return { organizationId, ownerId, key, path: `/v1/organizations/${organizationId}` }
  }

  function issue(request: Partial<KeyRequest> & { organizationId: string }) {
    return issueApiKey(deps, { name: 'Key', environment: 'live', by: 'operator', ...request })
  }

  return {
    ...world,
    app,
    /** For routes of other services beside them. */
    context,
    usage,
    organization,
    issue,
    send,
    async stop() {
      await app.close()
      await usage.close()
      await world.close()
    },
  }
}

export type Organizations = Awaited<ReturnType<typeof startOrganizations>>
