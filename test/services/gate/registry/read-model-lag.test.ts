import { randomBytes } from 'node:crypto'
import { afterAll, beforeEach, expect, test } from 'vitest'
import type { DomainEvent } from '../../../../infra/event-store/event.ts'
import type { Projection } from '../../../../infra/event-store/projection.ts'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import { eventTopics } from '../../../../schemas/events.ts'
import { changeService, createService } from '../../../../services/gate/registry/commands.ts'
import { updateEndpoint } from '../../../../services/webhooks/endpoints/commands.ts'
import { endsAsked } from '../../../support/ends-asked.ts'
import { type GateTenant, gateTenant, registration } from '../../../support/gate-world.ts'
import { openServiceWorld } from '../../../support/service-world.ts'
import { definition } from '../fixtures.ts'

// The process that decided last was killed or timed out before the read model had the event.

let tenant: GateTenant
const world = await openServiceWorld()
beforeEach(async () => {
  tenant = await gateTenant(world.deps)
})
afterAll(() => world.close())

const newId = () => `late-${randomBytes(6).toString('hex')}`

/** Returns the outcome of a command that starts while the event is on the log but not in the read model. */
async function behind(
  projection: Projection,
  { event, command }: { event: DomainEvent; command: () => Promise<unknown> },
) {
  let outcome: Promise<string> | undefined
  await world.without(projection, async () => {
    await world.write(tenant, event)
    const asked = endsAsked(world.log, { topic: eventTopics[event.type] })
    outcome = command().then(
      () => 'done',
      (error) => error.code,
    )
    await Promise.race([asked, outcome])
  })
  return outcome
}

const registered = (): DomainEvent => ({
  type: 'GateServiceRegistered',
  data: {
    service_id: newId(),
    organization_id: tenant.organizationId,
    environment: tenant.environment,
    definition: { ...definition, webhook_endpoint_id: tenant.endpointId },
    registered_at: world.now.ms,
  },
})

type Changes = Omit<Parameters<typeof updateEndpoint>[1], keyof GateTenant>
test.each<[string, Changes, string]>([
  ['is not disabled', { status: 'disabled' }, 'request.conflict'],
  [
    'stays subscribed to approvals',
    { event_types: ['session.result.persisted'] },
    'request.conflict',
  ],
])(
  'while the read model lags, an endpoint that a service uses %s',
  async (_what, changes, expected) => {
    const command = () => updateEndpoint(world.deps, { ...tenant, ...changes })
    expect(await behind(gateProjection, { event: registered(), command })).toBe(expected)
  },
)

test('other changes of an endpoint do not wait for the Gate read model', async () => {
  await world.without(gateProjection, async () => {
    await world.write(tenant, registered())
    await updateEndpoint(world.deps, { ...tenant, name: 'Others' })
  })
})

test.each(['registered', 'changed'])('no service is %s with a disabled endpoint', async (how) => {
  const { organizationId, environment, endpointId } = tenant
  const serviceId = newId()
  const service = { organizationId, environment, serviceId, webhook_endpoint_id: endpointId }
  if (how === 'changed') await createService(world.deps, { ...registration(tenant), id: serviceId })
  const command = () =>
    how === 'changed'
      ? changeService(world.deps, service)
      : createService(world.deps, { ...registration(tenant), id: serviceId })
  const event: DomainEvent = {
    type: 'WebhookEndpointDisabled',
    data: {
      organization_id: organizationId,
      endpoint_id: endpointId,
      reason: 'manual',
      disabled_at: world.now.ms,
    },
  }
  expect(await behind(webhooksProjection, { event, command })).toBe('gate.validation_failed')
})
