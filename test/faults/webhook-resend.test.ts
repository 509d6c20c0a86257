import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { lockKey, transaction } from '../../infra/postgres/pool.ts'
import { clusterLogs } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { createNumbers } from '../support/hand.ts'
import type { ServerProcess } from '../support/server-process.ts'
import { accept, type Behaviour, status } from '../support/webhook-behaviours.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { openWebhookWorld, sessionIds, type WebhookWorld } from '../support/webhook-world.ts'

const patience = { timeoutMs: 120_000 }
/** More than one call resends. */
const events = 1200
/** Kills at a random moment of a call. */
const kills = 4
const maxCallMs = 100

const answerSchema = z.object({
  data: z.object({ resent: z.number(), next_since: z.string().nullable() }),
})

describe.each(clusterLogs())(`${events} failed deliveries are resent, %s`, (log) => {
  const seed = Number(process.env.TEST_SEED ?? Date.now() % 1_000_000)
  const numbers = createNumbers(seed)
  let world: WebhookWorld
  let receiver: WebhookReceiver
  let behaviour: Behaviour = status(500)
  let api: ServerProcess
  let dispatcher: ServerProcess
  let projections: ServerProcess
  let endpointId: string
  /** Requests to the receiver before the first resend. */
  let requestsBefore = 0

  beforeAll(async () => {
    receiver = await startWebhookReceiver({ choose: () => behaviour })
    world = await openWebhookWorld({ log, env: { WEBHOOK_RETRY_SECONDS: '0' } })
    const types = ['session.result.persisted']
    endpointId = (await world.cluster.createEndpoint(receiver.url('/'), types)).id
    await world.cluster.kill(0)
    projections = await world.cluster.serve('projections')
    api = await world.cluster.serve('api')
    dispatcher = await world.startDispatcher()
    await world.score(world.tenant, sessionIds(`resend ${log}`, events))
    await ended('failed', 1)
    requestsBefore = receiver.requests.length
    behaviour = accept
  }, 240_000)
  afterAll(async () => {
    await world?.close()
    await receiver?.close()
  })

  /** Resolves when all deliveries have this status, and at least so many attempts. */
  const ended = (expected: string, attempts: number) =>
    eventually(async () => {
      const deliveries = await world.deliveries()
      const open = deliveries.filter((one) => one.status !== expected || one.attempts < attempts)
      expect([deliveries.length, open.length]).toEqual([events, 0])
    }, patience)

  async function resend(since: string, status = 'failed') {
    const { organizationId, secret } = world.tenant
    const path = `/v1/organizations/${organizationId}/webhooks/endpoints/${endpointId}/resend`
    const answer = await fetch(`${api.baseUrl}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ since, status }),
    })
    if (answer.status !== 202) throw new Error(`${answer.status} ${await answer.text()}`)
    return answerSchema.parse(await answer.json()).data
  }

  /** Calls until nothing is left. Returns the number of deliveries that the calls restarted. */
  async function resendAll(status: string): Promise<number> {
    let [resent, since]: [number, string | null] = [0, new Date(0).toISOString()]
    while (since !== null) {
      const answer = await resend(since, status)
      resent += answer.resent
      since = answer.next_since
    }
    return resent
  }

  async function restarts(): Promise<number> {
    const history = await world.history()
    return history.filter(({ type }) => type === 'WebhookRedeliveryRequested').length
  }

  /** Returns the number of requests by event id, without the first ones. */
  function received(after: number): Map<string, number> {
    const groups = Map.groupBy(receiver.requests.slice(after), ({ eventId }) => eventId)
    return new Map([...groups].map(([id, requests]) => [id, requests.length]))
  }

  /** Starts a call, and kills the server of the API once `isReached`. */
  async function interrupt(since: string, isReached: () => Promise<void>) {
    const call = resend(since).catch(() => undefined)
    await isReached()
    await api.end('SIGKILL')
    const answer = await call
    api = await world.cluster.serve('api')
    return answer
  }

  it('a resend that is interrupted by kills and repeated until 202 reaches the receiver completely', async () => {
    const start = new Date(0).toISOString()
    await transaction(world.pool, async (tx) => {
      await tx.query('select pg_advisory_xact_lock($1)', [lockKey(`webhook-resend:${endpointId}`)])
      const isWaiting = () =>
        eventually(async () => {
          const waiting = `select from pg_locks where locktype = 'advisory' and not granted`
          expect((await world.pool.query(waiting)).rowCount).toBe(1)
        }, patience)
      expect(await interrupt(start, isWaiting)).toBeUndefined()
    })
    expect(await restarts()).toBe(0)

    await projections.end('SIGKILL')
    const isAppended = () =>
      eventually(async () => expect(await restarts()).toBeGreaterThan(0), patience)
    expect(await interrupt(start, isAppended)).toBeUndefined()
    const appended = await restarts()
    expect(appended).toBeLessThan(events)
    projections = await world.cluster.serve('projections')

    let [since, resent, interrupted]: [string | null, number, number] = [start, 0, 2]
    for (let killed = 0; since !== null; killed++) {
      const ms = numbers() * maxCallMs
      const call: ReturnType<typeof interrupt> =
        killed < kills ? interrupt(since, () => delay(ms)) : resend(since)
      const answer = await call
      if (!answer) interrupted++
      else [since, resent] = [answer.next_since, resent + answer.resent]
    }
    await ended('succeeded', 2)
    const counts = received(requestsBefore)
    const expected = (await world.deliveries()).map(({ event_id }) => event_id)
    expect([...counts.keys()].toSorted()).toEqual(expected.toSorted())
    expect(receiver.problems).toEqual([])
    const requests = [...counts.values()].reduce((sum, count) => sum + count, 0)
    const restarted = await restarts()
    console.log(
      `seed ${seed}, ${log}: ${interrupted} calls interrupted, one of them after ${appended} appends, ${resent} deliveries reported by 202, ${restarted} restarts on the log, ${requests} requests for ${counts.size} webhook ids`,
    )
    // A repeat sees what the killed call appended.
    expect([restarted, requests]).toEqual([events, events])
  }, 240_000)

  it('repeats while the deliveries are pending add no second round', async () => {
    await dispatcher.end('SIGKILL')
    const [before, earlier] = [await restarts(), receiver.requests.length]
    expect(await resendAll('all')).toBe(events)
    const repeats = [
      await resendAll('all'),
      ...(await Promise.all([resendAll('all'), resendAll('failed')])),
    ]
    expect(repeats).toEqual([0, 0, 0])
    expect((await restarts()) - before).toBe(events)
    dispatcher = await world.startDispatcher()
    await ended('succeeded', 3)
    const counts = received(earlier)
    console.log(`${log}: ${repeats.length} repeats, ${counts.size} webhook ids received once`)
    expect(new Set(counts.values())).toEqual(new Set([1]))
    expect(counts.size).toBe(events)
  }, 240_000)
})
