import { randomBytes } from 'node:crypto'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { randomId } from '../../../../infra/ids.ts'
import type { WebhookEndpointCreated } from '../../../../schemas/events.ts'
import { visitorErased } from '../../../support/erased.ts'
import { eventually } from '../../../support/eventually.ts'
import { serviceRegistered } from '../../../support/gate-service.ts'
import { openTestLogs } from '../../../support/logs.ts'
import { status } from '../../../support/webhook-behaviours.ts'
import { startWebhookReceiver } from '../../../support/webhook-receiver.ts'
import { type Endpoint, openWebhookLog } from '../webhook-log.ts'

const minute = 60_000

describe.each(openTestLogs())('$name', async (testLog) => {
  const world = await openWebhookLog(testLog)
  await world.project()
  let response = 500
  const receiver = await startWebhookReceiver({
    choose: ({ path }) => status(path === '/failing' ? response : 200),
  })
  let passed = 0
  const clock = () => Date.now() + passed
  const start = () => world.start({ env: { WEBHOOK_RETRY_SECONDS: '0' }, clock })
  beforeEach(() => {
    response = 500
    passed = 0
  })
  afterAll(async () => {
    await world.close()
    await receiver.close()
  })

  /** Creates an endpoint that will fail, one that is told of it, and two that aren't. */
  async function endpoints() {
    const failing = await world.endpoint(receiver.url('/failing'), {
      name: 'Back end',
      event_types: ['endpoint.failing', 'session.result.persisted'],
    })
    const other = (some: Partial<WebhookEndpointCreated>) =>
      world.endpoint(receiver.url('/told'), {
        organization_id: failing.organizationId,
        event_types: ['endpoint.failing'],
        ...some,
      })
    const told = await other({})
    await other({ environment: 'test' })
    await other({ event_types: ['key.expiring'] })
    return { failing, told }
  }

  /** Delivers events, with one attempt each, and returns when the outcomes were evaluated. */
  async function deliver(
    endpoint: Endpoint,
    count = 1,
    { responds = 500, session = 'sid_1' } = {},
  ): Promise<void> {
    response = responds
    const dispatcher = await start()
    await world.raise(endpoint, count, { subject_id: session })
    await world.ended(endpoint)
    await dispatcher.stop()
    await world.readable()
  }

  async function notices({ id }: Endpoint) {
    const events = (await world.history()).flatMap(({ type, data }) =>
      type === 'WebhookEventRaised' && data.type === 'endpoint.failing' ? [data] : [],
    )
    return events.filter(({ subject_id }) => subject_id === id)
  }

  test('the others are told once that an endpoint fails, and once that it was disabled', async () => {
    const { failing, told } = await endpoints()
    const before = clock()
    await deliver(failing, 3)
    passed = 59 * minute
    await deliver(failing)
    expect(await notices(failing)).toEqual([])
    passed = 61 * minute
    await deliver(failing)
    passed = 90 * minute
    await deliver(failing)
    expect(await notices(failing)).toMatchObject([{ endpoint_ids: [told.id] }])
    await deliver(failing, 1, { responds: 410 })
    await start()
    const requests = await eventually(() => {
      const received = receiver.requests.filter(({ path }) => path === '/told')
      expect(received).toHaveLength(2)
      return received.map(({ body }) => JSON.parse(body))
    })
    const about = { id: failing.id, name: 'Back end' }
    const failing_since = requests[0].data.endpoint.failing_since
    expect(Date.parse(failing_since)).toBeGreaterThanOrEqual(before)
    expect(Date.parse(failing_since)).toBeLessThan(before + minute)
    expect(requests).toMatchObject([
      {
        type: 'endpoint.failing',
        data: {
          object: 'webhook_endpoint_health',
          endpoint: { ...about, status: 'active', disabled_reason: null, failing_since },
        },
      },
      {
        type: 'endpoint.failing',
        data: {
          endpoint: { ...about, status: 'disabled', disabled_reason: 'gone', failing_since },
        },
      },
    ])
    expect(await notices(failing)).toHaveLength(2)
  })

  test('an endpoint with a success within the hour, or fewer than three failures, is not failing', async () => {
    const { failing: recovered } = await endpoints()
    await deliver(recovered, 3)
    passed = 30 * minute
    await deliver(recovered, 1, { responds: 200 })
    passed = 61 * minute
    await deliver(recovered)
    const { failing: rare } = await endpoints()
    await deliver(rare)
    passed = 180 * minute
    await deliver(rare)
    expect([...(await notices(recovered)), ...(await notices(rare))]).toEqual([])
  })

  test('the others are not told again if the first failure is erased', async () => {
    const { failing } = await endpoints()
    const session = randomId('sid', randomBytes)
    await deliver(failing, 1, { session })
    passed = minute
    await deliver(failing, 3)
    passed = 70 * minute
    const dispatcher = await start()
    await eventually(async () => {
      passed += 2 * minute
      await world.raise(failing)
      expect(await notices(failing)).toHaveLength(1)
    })
    await dispatcher.stop()
    const about = { organization_id: failing.organizationId }
    await world.happen({ type: 'VisitorErased', data: visitorErased([session], about) })
    for (let i = 0; i < 3; i++) {
      passed += 2 * minute
      await deliver(failing)
    }
    expect(await notices(failing)).toHaveLength(1)
  })

  test('an endpoint that is only flagged is announced once, as active', async () => {
    const { failing } = await endpoints()
    const { id: endpointId, organizationId } = failing
    const serviceId = `told-${endpointId.slice(-20)}`
    await world.happen(serviceRegistered({ serviceId, organizationId, endpointId }))
    await deliver(failing, 1, { responds: 410 })
    passed = 120 * minute
    await deliver(failing, 3, { responds: 410 })
    passed = 180 * minute
    await deliver(failing)
    expect((await notices(failing)).map(({ data }) => JSON.parse(data).endpoint)).toMatchObject([
      { id: endpointId, status: 'active', disabled_reason: null },
    ])
  })
})
