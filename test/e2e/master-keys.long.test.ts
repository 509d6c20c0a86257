import { randomBytes } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openToken } from '../../docs/examples/express/verify-token.js'
import { type CollectClient, createCollectClient } from '../../infra/wire/collect/client.ts'
import { type Owner, operator } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { root } from '../support/test-projects.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { type Endpoint, fastWebhooks } from '../support/webhook-world.ts'

const observations = { version: 1, elapsed_ms: 5 } as const
const patient = { timeoutMs: 30_000, intervalMs: 100 }
const keys: Record<string, string> = {
  old: randomBytes(32).toString('base64'),
  new: randomBytes(32).toString('base64'),
}

/** The lists of keys that the numbered steps begin with. */
async function documentedSteps(): Promise<string[]> {
  const page = await readFile(path.join(root, 'docs/operate/operations.md'), 'utf8')
  const [, section = ''] = page.split('## Changing the master keys\n')
  return [...section.matchAll(/^\d\. `([a-z,]+)`:/gm)].map(([, list = '']) => list)
}

describe('master keys, which a command prints, are changed by the documented steps', () => {
  const file = path.join(tmpdir(), `tidegate-keys-${randomBytes(4).toString('hex')}`)
  const servers: ServerProcess[] = []
  const sessions: string[] = []
  let database: TestDatabase
  let settings: Record<string, string>
  let owner: Owner
  let receiver: WebhookReceiver
  let early: { client: CollectClient; sessionId: string }
  let endpoints: Endpoint[]
  let turn = 0

  beforeAll(async () => {
    database = await createTestDatabase({ empty: true })
    settings = {
      ...fastWebhooks,
      DATABASE_URL: database.url,
      KAFKA_BROKERS: '',
      TIDEGATE_MASTER_KEYS: '',
      TIDEGATE_MASTER_KEYS_COMMAND: `/bin/cat ${file}`,
    }
    await give('old')
    for (let n = 0; n < 2; n++) servers.push(await startServerProcess(['serve'], settings))
    owner = await operator(settings).organization()
    receiver = await startWebhookReceiver()
    endpoints = [await createEndpoint('/first')]
    const client = newClient()
    early = { client, ...(await client.open()) }
  }, 90_000)

  afterAll(async () => {
    await Promise.all(servers.map((server) => server.end('SIGTERM')))
    await receiver?.close()
    await database?.drop()
    await rm(file, { force: true })
  })

  const give = (list: string) =>
    writeFile(
      file,
      list
        .split(',')
        .map((name) => keys[name])
        .join(','),
    )

  /** Each request goes to the other process, as behind a load balancer. */
  const anyServer = () => servers[turn++ % 2]?.baseUrl ?? ''

  function newClient(continuity?: string): CollectClient {
    return createCollectClient({
      endpoint: '',
      publishableKey: owner.publishable.key,
      sdk: { name: 'test', version: '1', platform: 'web' },
      page: { url: 'https://shop.example/' },
      fetch: (url, init) => fetch(anyServer() + url, init),
      ...(continuity !== undefined && { continuity }),
    })
  }

  async function call<Data>(url: string, init: RequestInit = {}): Promise<Data> {
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${owner.secret.key}`)
    const answer = await fetch(anyServer() + url, { ...init, headers })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${url}: ${answer.status} ${text}`)
    return JSON.parse(text).data
  }

  const ofOrganization = (rest: string) => `/v1/organizations/${owner.organizationId}${rest}`

  async function createEndpoint(where: string): Promise<Endpoint> {
    const types = ['session.result.persisted']
    const body = JSON.stringify({ name: 'Receiver', url: receiver.url(where), event_types: types })
    const headers = { 'content-type': 'application/json' }
    const endpoint = await call<Endpoint>(ofOrganization('/webhooks/endpoints'), {
      method: 'POST',
      headers,
      body,
    })
    receiver.expectSignature(where, endpoint.signing_secret)
    return endpoint
  }

  const toldOf = (where: string, sessionId: string) =>
    eventually(
      () =>
        expect(receiver.requests.some((r) => r.path === where && r.body.includes(sessionId))).toBe(
          true,
        ),
      patient,
    )

  /** All that an installation does with its master keys. */
  async function worksAsEver(paths: string[]): Promise<void> {
    const client = newClient()
    const { sessionId } = await client.open()
    await client.sendBatch(observations)
    await tokenOpens(client, sessionId)
    for (const known of sessions)
      expect(await call(`/v1/sessions/${known}`)).toMatchObject({ id: known })
    for (const where of paths) await toldOf(where, sessionId)
    expect(receiver.problems).toEqual([])
  }

  async function newToken(): Promise<string> {
    const client = newClient()
    await client.open()
    return (await client.requestResult(observations)).sealedToken
  }

  async function tokenOpens(client: CollectClient, sessionId: string): Promise<void> {
    const { sealedToken } = await client.requestResult({ version: 1, elapsed_ms: 900 })
    expect(openToken(sealedToken, owner.secret.key)).toMatchObject({ session_id: sessionId })
    await eventually(() => call(`/v1/sessions/${sessionId}`), patient)
    sessions.push(sessionId)
  }

  /** A restart of one process after the other; requests are made between them, too. */
  async function restartWith(list: string, between: () => Promise<void>): Promise<void> {
    await give(list)
    for (const [n, server] of servers.entries()) {
      await server.end('SIGTERM')
      servers[n] = await startServerProcess(['serve'], settings)
      await between()
    }
  }

  it('which name three lists', async () => {
    expect(await documentedSteps()).toEqual(['old,new', 'new,old', 'new'])
    await worksAsEver(['/first'])
  }, 60_000)

  it('and the first two change nothing for anybody', async () => {
    const [first = '', second = ''] = await documentedSteps()
    const named = { method: 'POST', headers: { 'idempotency-key': 'one-rotation' } }
    const rotate = () =>
      call<Endpoint>(ofOrganization(`/webhooks/endpoints/${endpoints[0]?.id}/rotations`), named)
    for (const list of [first, second])
      await restartWith(list, async () => {
        await early.client.sendBatch(observations)
        await worksAsEver(['/first'])
      })
    await tokenOpens(early.client, early.sessionId)
    // A command that is repeated gets the answer that another master key made.
    const rotated = await rotate()
    receiver.expectSignature('/first', endpoints[0]?.signing_secret ?? '', rotated.signing_secret)
    await restartWith(second, async () => {
      expect(await rotate()).toEqual(rotated)
      await worksAsEver(['/first'])
    })
  }, 240_000)

  it('and after the last all that was made anew works, and what was not is back with the old key', async () => {
    const [, second = '', last = ''] = await documentedSteps()
    const { cli, operate } = operator(settings)
    const anew = async ({ id }: Owner['secret']) => {
      const made = await operate<{ id: string; revealed_key: string }>(
        'keys',
        'rotate',
        owner.slug,
        id,
      )
      return { id: made.id, key: made.revealed_key }
    }
    const before = owner
    owner = {
      ...owner,
      secret: await anew(owner.secret),
      publishable: await anew(owner.publishable),
    }
    endpoints.push(await createEndpoint('/second'))
    // Collect seals to a new key within five seconds.
    await eventually(async () => openToken(await newToken(), owner.secret.key), patient)
    await worksAsEver(['/first', '/second'])
    expect((await cli(['data-keys', 'reseal'])).code).toBe(0)
    await restartWith(last, () => eventually(() => call('/v1/sessions'), patient))
    // The first endpoint's secret of before signs for a day, and cannot be opened now.
    await worksAsEver(['/second'])
    const late = sessions.at(-1) ?? ''
    const headers = { authorization: `Bearer ${before.secret.key}` }
    expect((await fetch(`${anyServer()}/v1/sessions`, { headers })).status).toBe(401)
    expect(receiver.requests.some((r) => r.path === '/first' && r.body.includes(late))).toBe(false)

    await restartWith(second, async () => {})
    await toldOf('/first', late)
    expect((await fetch(`${anyServer()}/v1/sessions`, { headers })).status).toBe(200)
    const listed = await call<{ id: string }[]>('/v1/sessions?limit=200')
    expect(listed.map(({ id }) => id)).toEqual(expect.arrayContaining(sessions))
  }, 240_000)
})
