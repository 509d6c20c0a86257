import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { transaction } from '../../infra/postgres/pool.ts'
import { clusterLogs } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import type { ServerProcess } from '../support/server-process.ts'
import { accept, type Behaviour } from '../support/webhook-behaviours.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { openWebhookWorld, sessionIds, type WebhookWorld } from '../support/webhook-world.ts'

const patience = { timeoutMs: 60_000 }
const type = 'session.result.persisted'

/** The four gaps between two writes of a delivery: ADR 0017 says what follows from a kill in each. */
describe.each(clusterLogs())('a process is killed, %s', (log) => {
  let world: WebhookWorld
  let receiver: WebhookReceiver
  let behaviour: Behaviour
  let projections: ServerProcess
  let dispatcher: ServerProcess
  let sessions = 0

  beforeAll(async () => {
    receiver = await startWebhookReceiver({ choose: () => behaviour })
    // A lease ends soon, and an attempt lasts for as long as a test holds it.
    world = await openWebhookWorld({ log, env: { WEBHOOK_TIMEOUT_MS: '60000' } })
    await world.createEndpoint(receiver.url('/'), [type])
    await world.cluster.kill(0)
    projections = await world.cluster.serve('projections')
    dispatcher = await world.startDispatcher()
    behaviour = accept
    await score()
    await ended()
  }, 120_000)
  afterAll(async () => {
    await world?.close()
    await receiver?.close()
  })

  async function score(): Promise<void> {
    await world.score(world.tenant, sessionIds(`kill ${log} ${sessions++}`, 1))
  }

  async function recorded(what: 'WebhookEventRaised' | 'WebhookDeliveryAttempted') {
    const history = await world.history()
    return history.filter((event) => event.type === what).length
  }

  /** Everything that was scored is delivered; returns how many attempts it took. */
  async function ended(): Promise<number[]> {
    return eventually(async () => {
      const deliveries = await world.deliveries()
      expect(deliveries.map(({ status }) => status)).toEqual(Array(sessions).fill('succeeded'))
      return deliveries.map(({ attempts }) => attempts)
    }, patience)
  }

  /** Returns the number of requests for each event, in the order of the first requests. */
  function received(): number[] {
    const counts = new Map<string, number>()
    for (const { eventId } of receiver.requests) counts.set(eventId, (counts.get(eventId) ?? 0) + 1)
    return [...counts.values()]
  }

  /** Answers requests when `answer` is called. */
  function hold(): { answer: () => void } {
    const { promise, resolve } = Promise.withResolvers<void>()
    behaviour = {
      ...accept,
      async answer(_request, response) {
        await promise
        response.end('received')
      },
    }
    return { answer: resolve }
  }

  it('after the event is planned, before the read model shows it: it is sent once', async () => {
    const before = await recorded('WebhookEventRaised')
    await projections.end('SIGKILL')
    await score()
    await eventually(async () => {
      expect(await recorded('WebhookEventRaised')).toBe(before + 1)
    }, patience)
    await dispatcher.end('SIGKILL')
    projections = await world.cluster.serve('projections')
    dispatcher = await world.startDispatcher()
    expect(await ended()).toEqual(Array(sessions).fill(1))
    expect(received()).toEqual([1, 1])
  })

  it('after the delivery is taken, before it is sent: it is sent once', async () => {
    const { rows } = await world.pool.query<{ schema: string }>(
      `select schema_name as schema from tidegate.projection_builds where projection = 'organizations' and status = 'live'`,
    )
    // A delivery that is taken waits for the state of its organization.
    await transaction(world.pool, async (tx) => {
      await tx.query(`lock table ${rows[0]?.schema}.organizations in access exclusive mode`)
      await score()
      await eventually(async () => {
        const { rowCount } = await world.pool.query(
          `select from tidegate.webhook_leases where state = 'sending'`,
        )
        expect(rowCount).toBe(1)
      }, patience)
      await dispatcher.end('SIGKILL')
    })
    dispatcher = await world.startDispatcher()
    expect(await ended()).toEqual(Array(sessions).fill(1))
    expect(received()).toEqual([1, 1, 1])
  })

  it('after the request is sent, before the attempt is recorded: it is sent again', async () => {
    hold()
    await score()
    await receiver.reached(4)
    await dispatcher.end('SIGKILL')
    behaviour = accept
    dispatcher = await world.startDispatcher()
    expect(await ended()).toEqual(Array(sessions).fill(1))
    expect(received()).toEqual([1, 1, 1, 2])
  })

  it('after the attempt is recorded, before the read model shows it: it is not sent again', async () => {
    const before = await recorded('WebhookDeliveryAttempted')
    const { answer } = hold()
    await score()
    await receiver.reached(6)
    const other = await world.startDispatcher()
    await projections.end('SIGKILL')
    answer()
    await eventually(async () => {
      expect(await recorded('WebhookDeliveryAttempted')).toBe(before + 1)
    }, patience)
    await dispatcher.end('SIGKILL')
    projections = await world.cluster.serve('projections')
    expect(await ended()).toEqual(Array(sessions).fill(1))
    await other.end('SIGTERM')
    expect(received()).toEqual([1, 1, 1, 2, 1])
  })
})
