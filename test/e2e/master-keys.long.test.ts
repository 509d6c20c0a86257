import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CollectClient } from '../../infra/wire/collect/client.ts'
import { openToken } from '../../services/web/server-sdk/index.ts'
import {
  type ApiRequest,
  type Cluster,
  type Endpoint,
  type Owner,
  startCluster,
} from '../support/cluster.ts'
import { createTestClient } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { root } from '../support/test-projects.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { fastWebhooks } from '../support/webhook-world.ts'

const observations = { version: 1, elapsed_ms: 5 } as const
const patient = { timeoutMs: 30_000, intervalMs: 100 }
const keys: Record<string, string> = {
  old: randomBytes(32).toString('base64'),
  new: randomBytes(32).toString('base64'),
}

/** The lists of keys that the numbered steps begin with. */
async function documentedSteps(): Promise<string[]> {
  const page = await readFile(path.join(root, 'docs/operate/backup.md'), 'utf8')
  const [, section = ''] = page.split('## Changing the master keys\n')
  return [...section.matchAll(/^\d\. `([a-z,]+)`:/gm)].map(([, list = '']) => list)
}

describe('master keys, which a command prints, are changed by the documented steps', () => {
  const file = path.join(temporaryFolder('keys'), 'keys')
  const sessions: string[] = []
  let cluster: Cluster
  let receiver: WebhookReceiver
  let early: { client: CollectClient; sessionId: string }
  let endpoints: Endpoint[]
  let turn = 0

  beforeAll(async () => {
    await give('old')
    const command = { TIDEGATE_MASTER_KEYS: '', TIDEGATE_MASTER_KEYS_COMMAND: `/bin/cat ${file}` }
    // On a busy machine two restarts take longer than the fast attempts.
    const WEBHOOK_RETRY_SECONDS = `${fastWebhooks.WEBHOOK_RETRY_SECONDS},10,10,10,10,10`
    const env = { ...fastWebhooks, WEBHOOK_RETRY_SECONDS, ...command }
    cluster = await startCluster({ processes: 2, isEmpty: true, env })
    receiver = await startWebhookReceiver()
    endpoints = [await createEndpoint('/first')]
    const client = newClient()
    early = { client, ...(await client.open()) }
  }, 90_000)

  afterAll(async () => {
    await cluster?.stop()
    await receiver?.close()
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
  const nextServer = () => turn++ % 2

  const newClient = () =>
    createTestClient(cluster, {
      endpoint: '',
      fetch: (url, init) => fetch(cluster.baseUrls[nextServer()] + url, init),
    })

  const call = <Data>(url: string, asked: ApiRequest = {}) =>
    cluster.read<Data>(url, { server: nextServer(), ...asked })

  async function createEndpoint(where: string): Promise<Endpoint> {
    const url = receiver.url(where)
    const endpoint = await cluster.createEndpoint(url, ['session.result.persisted'])
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
    expect(await openToken(sealedToken, cluster.owner.secret.key)).toMatchObject({
      session_id: sessionId,
    })
    await eventually(() => call(`/v1/sessions/${sessionId}`), patient)
    sessions.push(sessionId)
  }

  /** A restart of one process after the other; requests are made between them, too. */
  async function restartWith(list: string, between: () => Promise<void>): Promise<void> {
    await give(list)
    for (const server of [0, 1]) {
      await cluster.replace(server)
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
    const organization = `/v1/organizations/${cluster.owner.organizationId}`
    const rotate = () =>
      call<Endpoint>(`${organization}/webhooks/endpoints/${endpoints[0]?.id}/rotations`, named)
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
    const { owner } = cluster
    const anew = async ({ id }: Owner['secret']) => {
      const args = ['keys', 'rotate', owner.slug, id]
      const made = await cluster.operate<{ id: string; revealed_key: string }>(...args)
      return { id: made.id, key: made.revealed_key }
    }
    cluster.owner = {
      ...owner,
      secret: await anew(owner.secret),
      publishable: await anew(owner.publishable),
    }
    endpoints.push(await createEndpoint('/second'))
    // Collect seals to a new key within five seconds.
    await eventually(async () => openToken(await newToken(), cluster.owner.secret.key), patient)
    await worksAsEver(['/first', '/second'])
    expect(await cluster.cli(['data-keys', 'reseal'])).toMatchObject({ code: 0 })
    await restartWith(last, () => eventually(() => call('/v1/sessions'), patient))
    // The first endpoint's secret of before signs for a day, and cannot be opened now.
    await worksAsEver(['/second'])
    const late = sessions.at(-1) ?? ''
    const { key } = owner.secret
    expect((await cluster.ask('/v1/sessions', { key })).status).toBe(401)
    expect(receiver.requests.some((r) => r.path === '/first' && r.body.includes(late))).toBe(false)

    await restartWith(second, async () => {})
    await toldOf('/first', late)
    expect((await cluster.ask('/v1/sessions', { key })).status).toBe(200)
    const listed = await call<{ id: string }[]>('/v1/sessions?limit=200')
    expect(listed.map(({ id }) => id)).toEqual(expect.arrayContaining(sessions))
  }, 240_000)
})
