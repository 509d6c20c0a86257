import { once } from 'node:events'
import { readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type CliResult, cli } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { serveLocally } from '../support/local-server.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'
import { listen, stopListeners } from '../support/webhook-listener.ts'

interface Backend {
  url: string
  /** Resolves at the first request. */
  reached: Promise<unknown>
  /** Until then every request waits. */
  answer(): void
}

async function startBackend(status: number): Promise<Backend> {
  const { promise: released, resolve: answer } = Promise.withResolvers<void>()
  const { server, url, close } = await serveLocally(async (_, response) => {
    await released
    response.writeHead(status).end()
  })
  onTestFinished(close)
  return { url: `${url}/`, reached: once(server, 'request'), answer }
}

afterEach(stopListeners)

function dataOf<Data>({ code, stdout, stderr }: CliResult): Data {
  if (code !== 0) throw new Error(`it ended with ${code}: ${stdout}${stderr}`)
  const { data }: { data: Data } = JSON.parse(stdout)
  return data
}

/** Commands are asked again as often as a process takes to start. */
const eachAProcess = { intervalMs: 400 }

const bothForms = { 'webhook-signature': 'valid', 'X-Foil-Signature': 'valid' }

interface Delivery {
  id: string
  event_id: string
  endpoint_id: string
  organization_id: string
  status: string
  attempts: number
  response_status: number | null
}

describe('tidegate webhooks, beside a running tidegate dev', () => {
  let server: RunningTidegate

  beforeAll(async () => {
    server = await startTidegate({ env: { WEBHOOK_RETRY_SECONDS: '0,0.05,0.05' } })
  }, 60_000)
  afterAll(() => server?.stop())

  const webhooks = (...args: string[]) => cli(['webhooks', ...args], { DATA_DIR: server.dataDir })
  const operate = async <Data>(...args: string[]) => dataOf<Data>(await webhooks(...args, '--json'))

  async function api<Data>(place: string, changes?: object): Promise<Data> {
    const { organization_id, live } = server.credentials
    const answer = await fetch(`${server.baseUrl}/v1/organizations/${organization_id}${place}`, {
      headers: { authorization: `Bearer ${live.secret_key}`, 'content-type': 'application/json' },
      ...(changes && { method: 'PATCH', body: JSON.stringify(changes) }),
    })
    expect(answer.status).toBe(200)
    const { data }: { data: Data } = JSON.parse(await answer.text())
    return data
  }

  it('says what is missing when nothing listens', async () => {
    const { code, stdout, stderr } = await webhooks('trigger')
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain('tidegate webhooks listen')
  })

  const listening = (...args: string[]) => listen(['--json', ...args], server.dataDir)
  const endpoints = () => api<{ id: string; status: string }[]>('/webhooks/endpoints')
  /** Sends a test to the endpoint; returns the ids of its delivery. */
  async function triggered(endpoint_id = ''): Promise<{ event_id: string; endpoint_id: string }> {
    const [test] = await operate<{ event_id: string }[]>('trigger', '--endpoint', endpoint_id)
    return { event_id: test?.event_id ?? '', endpoint_id }
  }
  const file = () => path.join(server.dataDir, 'webhook-listener.json')
  async function remembered(): Promise<Record<string, { endpoint_id: string }>> {
    return JSON.parse(await readFile(file(), 'utf8'))
  }

  it('shows a test that was triggered, verified in both forms, and disables the endpoint when it ends', async () => {
    const listener = await listening()
    const [test] = await operate<{ event_id: string; endpoint_id: string }[]>('trigger')
    expect(test?.endpoint_id).toBe(listener.endpointId)
    await eventually(() =>
      expect(listener.seen()).toMatchObject([
        {
          event_id: test?.event_id,
          type: 'webhook.test',
          times_seen: 1,
          signatures: bothForms,
          answered: 200,
        },
      ]),
    )
    expect(await listener.stop()).toBe(0)
    expect(await endpoints()).toMatchObject([{ id: listener.endpointId, status: 'disabled' }])
  })

  it('has one endpoint however often it starts, and keeps its secret to its owner', async () => {
    const [known] = await endpoints()
    const event_types = ['session.result.persisted']
    const listener = await listening('--event-types', ...event_types)
    expect(listener.endpointId).toBe(known?.id)
    expect(await endpoints()).toMatchObject([{ status: 'active', url: listener.url, event_types }])
    expect((await stat(file())).mode & 0o077).toBe(0)
  })

  it('has an endpoint for each environment, and makes another when the one it remembers is not there', async () => {
    const { organization_id } = server.credentials
    const [live, test] = [`${organization_id} live`, `${organization_id} test`]
    const known = await remembered()
    expect(Object.keys(known)).toEqual([live])
    const gone = { endpoint_id: `we_${'0'.repeat(32)}`, signing_secret: 'whsec_AAAA' }
    await writeFile(file(), JSON.stringify({ ...known, [test]: gone }))
    const inTest = await listening('--environment', 'test')
    const inLive = await listening()
    const both = await remembered()
    expect(both[live]).toEqual({ ...known[live], endpoint_id: inLive.endpointId })
    expect(both[test]?.endpoint_id).toBe(inTest.endpointId)
    expect(new Set([inLive.endpointId, inTest.endpointId, gone.endpoint_id]).size).toBe(3)
  })

  it('shows what a session raises, in words for people and with ids that trigger prints', async () => {
    const json = await listening()
    const words = await listen(['--environment', 'test'], server.dataDir)
    const [fingerprint, result] = ['session.fingerprint.calculated', 'session.result.persisted']
    const [raised] = await operate<{ event_id: string; session_id: string }[]>('trigger', result)
    await eventually(() => expect(json.lines).toHaveLength(2))
    const shown = {
      signatures: bothForms,
      payload: { data: { session: { id: raised?.session_id } } },
    }
    expect(json.seen().toSorted((a, b) => a.type.localeCompare(b.type))).toMatchObject([
      { type: fingerprint, ...shown },
      { type: result, event_id: raised?.event_id, ...shown },
    ])
    const other = await webhooks('trigger', fingerprint, '--environment', 'test')
    expect(other).toMatchObject({ code: 0, stderr: '' })
    const id = /^evt_\w+/.exec(other.stdout)?.[0] ?? 'none'
    await eventually(() => expect(words.lines.join('\n')).toContain(id))
    expect(words.lines.join('\n')).toMatch(
      /session\.fingerprint\.calculated {2}evt_\w+ {2}responded 200\n {2}webhook-signature: valid\n {2}X-Foil-Signature: valid\n {2}\{\n {4}"id": "evt_/,
    )
    // Live and test never hear of each other.
    expect(json.lines).toHaveLength(2)
  })

  it('lists what could not be delivered, and redelivers it', async () => {
    const broken = await listening('--status', '500')
    const test = await triggered(broken.endpointId)
    const { event_id: id } = test
    const failures = () => operate<Delivery[]>('deliveries', 'development', '--status', 'failed')
    await eventually(() => expect(broken.lines).toHaveLength(3), { timeoutMs: 20_000 })
    expect(broken.seen()).toMatchObject(
      [1, 2, 3].map((times_seen) => ({ event_id: id, times_seen })),
    )
    const about = { ...test, organization_id: server.credentials.organization_id }
    const failed = { ...about, status: 'failed', attempts: 3, response_status: 500 }
    await eventually(async () => expect(await failures()).toMatchObject([failed]), eachAProcess)
    const table = await webhooks('deliveries')
    for (const cell of [id, about.organization_id, 'webhook.test', '500'])
      expect(table.stdout).toContain(cell)

    await broken.stop()
    const refused = await webhooks('redeliver', id)
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain('not active')
    const told = await webhooks('resend', test.endpoint_id, '--since', '1h')
    expect(told).toMatchObject({ code: 1, stdout: '' })
    expect(told.stderr).toContain('not active')

    const mended = await listening()
    expect(mended.endpointId).toBe(broken.endpointId)
    expect(await operate<Delivery[]>('redeliver', id)).toMatchObject([about])
    const answered = { event_id: id, signatures: bothForms, answered: 200 }
    await eventually(() => expect(mended.seen()).toMatchObject([answered]))
    await eventually(async () => {
      const event = await api<{ webhook_deliveries: Delivery[] }>(`/events/${id}`)
      expect(event.webhook_deliveries).toMatchObject([{ status: 'succeeded', attempts: 4 }])
    })
    expect(await failures()).toEqual([])
    const [{ id: deliveryId } = { id: '' }] = await operate<Delivery[]>(
      'deliveries',
      '--status',
      'succeeded',
    )
    const attempts = await operate<{ succeeded: boolean; response_status: number }[]>(
      'attempts',
      deliveryId,
    )
    expect(attempts.map(({ response_status }) => response_status)).toEqual([500, 500, 500, 200])
    expect((await webhooks('redeliver', id)).stderr).toContain('name one')
    const again = await operate<Delivery[]>('redeliver', id, '--endpoint', test.endpoint_id)
    expect(again).toHaveLength(1)
    await eventually(() => expect(mended.lines).toHaveLength(2))
  }, 90_000)

  it('lists what was skipped as its endpoint was disabled, and resends it once that is enabled', async () => {
    const backend = await startBackend(500)
    const listener = await listening('--forward', backend.url)
    const endpointId = listener.endpointId ?? ''
    const about = await triggered(endpointId)
    // Disabled while the first attempt is under way, it is not when the second is due.
    await backend.reached
    await api(`/webhooks/endpoints/${endpointId}`, { status: 'disabled' })
    backend.answer()
    const deliveries = (status: string) =>
      operate<Delivery[]>('deliveries', '--status', status, '--endpoint', endpointId)
    const resend = (...args: string[]) => webhooks('resend', endpointId, '--since', '1h', ...args)
    await eventually(async () => {
      expect(await deliveries('skipped')).toMatchObject([
        { ...about, status: 'skipped', attempts: 1 },
      ])
    }, eachAProcess)
    const refused = await resend()
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain(`The endpoint ${endpointId} is not active`)

    await listener.stop()
    const mended = await listening()
    expect(await resend('--until', '30m')).toMatchObject({ stdout: 'Deliveries queued: 0\n' })
    expect(await resend()).toMatchObject({ code: 0, stdout: 'Deliveries queued: 1\n' })
    await eventually(() => expect(mended.seen()).toMatchObject([{ event_id: about.event_id }]))
    expect(await deliveries('skipped,failed')).toEqual([])
  }, 90_000)

  it('does not take an endpoint of others for one without deliveries', async () => {
    const [known] = await endpoints()
    const create = ['org', 'create', '--name', 'Other', '--slug', 'other', '--json']
    dataOf(await cli(create, { DATA_DIR: server.dataDir }))
    const foreign = await webhooks('deliveries', 'other', '--endpoint', known?.id ?? '')
    const stderr = 'endpoint: no such id in this organization.\n'
    expect(foreign).toMatchObject({ code: 1, stderr })
  })
})
