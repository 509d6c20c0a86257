import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RebuildReport } from '../../infra/event-store/rebuild.ts'
import { derivedId } from '../../infra/ids.ts'
import { clusterLogs, type Endpoint } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { accept, acceptAfter, type Behaviour, status } from '../support/webhook-behaviours.ts'
import {
  type Received,
  startWebhookReceiver,
  verifiesOwn,
  verifiesStandard,
  type WebhookReceiver,
} from '../support/webhook-receiver.ts'
import {
  openWebhookWorld,
  readDeliveries,
  sessionIds,
  type WebhookWorld,
} from '../support/webhook-world.ts'

describe.each(clusterLogs())('a read model that is built anew, %s', (log) => {
  let world: WebhookWorld
  let receiver: WebhookReceiver
  let dispatcher: ServerProcess
  const answers: Record<string, Behaviour> = {
    '/well': accept,
    '/ill': status(500),
    '/gone': status(410),
  }
  const requestsOf = (path: string) => receiver.requests.filter((request) => request.path === path)
  const counts = () => Object.keys(answers).map((path) => requestsOf(path).length)

  beforeAll(async () => {
    receiver = await startWebhookReceiver({
      choose: ({ path }) => answers[path] ?? acceptAfter(20),
    })
    // After its second attempt a delivery that fails is not due for the rest of the test.
    world = await openWebhookWorld({ log, env: { WEBHOOK_RETRY_SECONDS: '0,0.2,3600' } })
    dispatcher = await world.startDispatcher()
    for (const path of Object.keys(answers)) {
      const types = ['session.result.persisted']
      const { signing_secret } = await world.createEndpoint(receiver.url(path), types)
      receiver.expectSignature(path, signing_secret)
    }
    await world.score(world.tenant, sessionIds('delivered', 100))
    await eventually(
      async () => expect(await ends()).toEqual({ succeeded: 100, retried: 100, ended: 100 }),
      {
        timeoutMs: 30_000,
      },
    )
  }, 90_000)
  afterAll(async () => {
    await world?.close()
    await receiver?.close()
  })

  /** Deliveries by how far they are; `ended`: failed or, once the endpoint was disabled, skipped. */
  async function ends(pool = world.pool) {
    const all = await readDeliveries(pool)
    const count = (...names: string[]) => all.filter((one) => names.includes(one.status)).length
    const retried = all.filter((one) => one.status === 'pending' && one.attempts === 2).length
    return { succeeded: count('succeeded'), retried, ended: count('failed', 'skipped') }
  }

  /** Raises another event and waits for its delivery; earlier ones have been sent by then. */
  async function oneMore(name: string, pool = world.pool): Promise<void> {
    const { succeeded, retried, ended } = await ends(pool)
    await world.score(world.tenant, sessionIds(name, 1))
    const after = { succeeded: succeeded + 1, retried: retried + 1, ended }
    await eventually(async () => expect(await ends(pool)).toEqual(after), { timeoutMs: 30_000 })
  }

  it('tidegate rebuild webhooks sends nothing, and builds the same', async () => {
    const before = counts()
    expect(before.slice(0, 2)).toEqual([100, 200])
    const { code, stdout } = await world.cluster.cli(['rebuild', 'webhooks', '--json'])
    expect(code).toBe(0)
    const report: RebuildReport = JSON.parse(stdout)
    expect(report).toMatchObject({ equal: true, switched: true })
    expect(counts()).toEqual(before)
    await oneMore('after the rebuild')
    const [well = 0, ill = 0, gone = 0] = before
    expect(counts()).toEqual([well + 1, ill + 2, gone])
    expect(receiver.problems).toEqual([])
  }, 60_000)

  it('a secret that is rotated under traffic signs all that happens after the answer, and the one before signs on', async () => {
    const { cluster } = world
    const tenant = await cluster.organization()
    const type = 'session.result.persisted'
    const url = receiver.url('/rotated')
    const { id, signing_secret: first } = await cluster.createEndpoint(url, [type], tenant)
    const arrived = (count: number) =>
      eventually(async () => expect(requestsOf('/rotated').length).toBeGreaterThanOrEqual(count))
    const { succeeded } = await ends()
    let scored = 0
    let isRotated = false
    const traffic = async () => {
      while (!isRotated) {
        await world.score(tenant, sessionIds(`rotation ${scored}`, 10))
        scored += 10
        await arrived(scored - 20)
      }
    }
    const sending = traffic()
    await arrived(50)
    const rotations = `/v1/organizations/${tenant.organizationId}/webhooks/endpoints/${id}/rotations`
    const rotation = { method: 'POST', key: tenant.secret.key }
    const { signing_secret: second } = await cluster.read<Endpoint>(rotations, rotation)
    const sessions = sessionIds('after the rotation', 50)
    await world.score(tenant, sessions)
    isRotated = true
    await sending
    const after = succeeded + scored + sessions.length
    await eventually(async () => expect((await ends()).succeeded).toBe(after), {
      timeoutMs: 30_000,
    })
    const requests = requestsOf('/rotated')
    expect(requests.filter((request) => !verifiesStandard(request, first))).toEqual([])
    expect(requests.filter((request) => !verifiesStandard(request, second))).not.toEqual([])
    const resultIds = new Set<string>(
      sessions.map((session) => derivedId('evt', 'webhook-event', type, session)),
    )
    const since = requests.filter(({ eventId }) => resultIds.has(eventId))
    expect(since).toHaveLength(sessions.length)
    const isBySecond = (request: Received) =>
      verifiesStandard(request, second) && verifiesOwn(request, second)
    expect(since.filter((request) => !isBySecond(request))).toEqual([])
  }, 60_000)

  // On the embedded log the database is the log.
  if (log === 'kafka') {
    it('a database that is lost costs no delivery twice', async () => {
      const before = counts()
      const rows = await world.deliveries()
      const database = await createTestDatabase()
      const { settings } = world.cluster
      await Promise.all([world.cluster.kill(0), dispatcher.end('SIGKILL')])
      const start = (...args: string[]) =>
        startServerProcess(['serve', ...args], { ...settings, DATABASE_URL: database.url })
      // The claim of the lost database is live still.
      await expect(start()).rejects.toThrow(/belongs to another database: .* serve --take-over-log/)
      const server = await start('--take-over-log')
      try {
        const check = async () => expect(await readDeliveries(database.pool)).toEqual(rows)
        await eventually(check, { timeoutMs: 30_000, intervalMs: 200 })
        await oneMore('after the loss', database.pool)
        const [well = 0, ill = 0, gone = 0] = before
        expect(counts()).toEqual([well + 1, ill + 2, gone])
      } finally {
        await server.end('SIGTERM')
        await database.drop()
      }
    }, 90_000)
  }
})
