import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { DomainEvent } from '../../../../infra/event-store/event.ts'
import type { Projection } from '../../../../infra/event-store/projection.ts'
import type { Topic } from '../../../../infra/log/port.ts'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import { eventTopics } from '../../../../schemas/events.ts'
import { changeService, createService } from '../../../../services/gate/registry/commands.ts'
import { updateEndpoint } from '../../../../services/webhooks/endpoints/commands.ts'
import { endsAsked } from '../../../support/ends-asked.ts'
import { type GateTenant, gateTenant, registration } from '../../../support/gate-world.ts'
import { openServiceWorld, type ServiceWorld } from '../../../support/service-world.ts'
import { definition } from '../given.ts'

// Whoever decided last was killed, or gave up, before the read model showed it.

let world: ServiceWorld
let own: GateTenant
beforeAll(async () => {
  world = await openServiceWorld()
})
beforeEach(async () => {
  own = await gateTenant(world.deps)
})
afterAll(() => world?.close())

const newId = () => `late-${randomBytes(6).toString('hex')}`

interface Behind {
  projection: Projection
  topic: Topic
  /** What is on the log and cannot be read. */
  event: DomainEvent
}

/** What becomes of the command that begins while the read model does not show the event. */
async function behind({ projection, topic, event }: Behind, command: () => Promise<unknown>) {
  let outcome: Promise<string> | undefined
  await world.without(projection, async () => {
    await world.write(own, event)
    const asked = endsAsked(world.log, { topic })
    outcome = command().then(
      () => 'done',
      (error) => error.code,
    )
    await Promise.race([asked, outcome])
  })
  return outcome
}

const registered = (): Behind => ({
  projection: gateProjection,
  topic: eventTopics.GateServiceRegistered,
  event: {
    type: 'GateServiceRegistered',
    data: {
      service_id: newId(),
      organization_id: own.organizationId,
      environment: own.environment,
      definition: { ...definition, webhook_endpoint_id: own.endpointId },
      registered_at: world.now.ms,
    },
  },
})

test('an endpoint that a service names stays as it is', async () => {
  const off = () => updateEndpoint(world.deps, { ...own, status: 'disabled' })
  expect(await behind(registered(), off)).toBe('request.conflict')
  own = await gateTenant(world.deps)
  const unsubscribe = () =>
    updateEndpoint(world.deps, { ...own, event_types: ['session.result.persisted'] })
  expect(await behind(registered(), unsubscribe)).toBe('request.conflict')
})

test('other changes of an endpoint do not wait for services', async () => {
  const rename = () => updateEndpoint(world.deps, { ...own, name: 'Others' })
  let outcome: unknown
  await world.without(gateProjection, async () => {
    await world.write(own, registered().event)
    outcome = await rename().then(() => 'done')
  })
  expect(outcome).toBe('done')
})

test('a service does not get an endpoint that was disabled', async () => {
  const disabled = (): Behind => ({
    projection: webhooksProjection,
    topic: eventTopics.WebhookEndpointDisabled,
    event: {
      type: 'WebhookEndpointDisabled',
      data: {
        organization_id: own.organizationId,
        endpoint_id: own.endpointId,
        reason: 'manual',
        disabled_at: world.now.ms,
      },
    },
  })
  const register = () => createService(world.deps, { ...registration(own), id: newId() })
  expect(await behind(disabled(), register)).toBe('gate.validation_failed')
  own = await gateTenant(world.deps)
  const serviceId = newId()
  await createService(world.deps, { ...registration(own), id: serviceId })
  const { organizationId, environment, endpointId: webhook_endpoint_id } = own
  const change = () =>
    changeService(world.deps, { organizationId, environment, serviceId, webhook_endpoint_id })
  expect(await behind(disabled(), change)).toBe('gate.validation_failed')
})
