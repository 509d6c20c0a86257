import { randomBytes } from 'node:crypto'
import type { DomainEvent } from '../../../../infra/event-store/event.ts'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { organizationsProjection } from '../../../../projections/organizations/projection.ts'
import { sessionsProjection } from '../../../../projections/sessions/projection.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import type { Environment } from '../../../../schemas/events.ts'
import { createOrganization, issueApiKey } from '../../../../services/organizations/commands.ts'
import { webhookRoutes } from '../../../../services/webhooks/routes.ts'
import { setStatus } from '../../../support/organization-status.ts'
import { createServiceApp } from '../../../support/service-app.ts'
import { openServiceWorld } from '../../../support/service-world.ts'

/** The webhook routes over the real log, read models, authentication and idempotency; the clock is the test's. */
export async function startWebhooks() {
  const projections = [
    organizationsProjection,
    webhooksProjection,
    gateProjection,
    sessionsProjection,
  ]
  const world = await openServiceWorld({ projections })
  const { pool, deps } = world
  const { app, context, send } = await createServiceApp(world)
  webhookRoutes(app, { ...context, config: { WEBHOOK_ALLOWED_NETWORKS: [] }, readPool: pool })

  async function organization(environment: Environment = 'live') {
    const slug = `org-${randomBytes(4).toString('hex')}`
    const { organizationId } = await createOrganization(deps, { name: 'Acme', slug })
    const key = await secretKey(organizationId, environment)
    const path = `/v1/organizations/${organizationId}`
    return {
      organizationId,
      environment,
      key,
      endpoints: `${path}/webhooks/endpoints`,
      events: `${path}/events`,
    }
  }

  async function secretKey(organizationId: string, environment: Environment): Promise<string> {
    const asked = {
      organizationId,
      name: 'Key',
      environment,
      type: 'secret',
      scopes: ['*'],
    } as const
    return (await issueApiKey(deps, { ...asked, scopes: [...asked.scopes], by: 'operator' }))
      .revealedKey
  }

  function append(
    of: { organizationId: string; environment: Environment },
    ...events: DomainEvent[]
  ) {
    return world.append(projectionOf(events), of, ...events)
  }

  return {
    ...world,
    app,
    organization,
    secretKey,
    send,
    append,
    suspend: (organizationId: string) => setStatus(deps, organizationId, 'suspended'),
    async stop() {
      await app.close()
      await world.close()
    },
  }
}

function projectionOf(events: DomainEvent[]) {
  if (events.some(({ type }) => type.startsWith('Gate'))) return gateProjection
  return events.some(({ type }) => type === 'SessionScored')
    ? sessionsProjection
    : webhooksProjection
}

export type Webhooks = Awaited<ReturnType<typeof startWebhooks>>
