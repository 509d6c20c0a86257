import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../infra/local/embedded-postgres.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { type Cluster, clusterLogs, type IssuedKey, startCluster } from '../support/cluster.ts'
import { codeBlock } from '../support/code-block.ts'
import { eventually } from '../support/eventually.ts'
import { type Integrator, startIntegrator } from '../support/gate-integrator.ts'
import { createMarks } from '../support/marked/marks.ts'
import { unmarkedMembers } from '../support/marked/observations.ts'
import { filesOf, findMarked, placesOf, unseenMembers } from '../support/marked/scan.ts'
import { signUpMarked } from '../support/marked/signups.ts'
import {
  type MarkedVisitor,
  markedVisitor,
  openMarked,
  visitMarked,
} from '../support/marked/visits.ts'
import { silent } from '../support/projections.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

const patient = { timeoutMs: 60_000, intervalMs: 200 }
const [people, erasedPeople] = [20, 5]

/** What no place has, also of people who are not erased: the server keeps none of it, or another stands in its place. */
const neverKept = [
  'continuity',
  'the value of a header',
  'signature',
  'x-request-id',
  'origin',
  'referer',
  'cookie',
  'snapshot.proofs.answer_mac',
]

/** What the answers may have that the tests look into. */
interface AnsweredData {
  id: string
  visitor_fingerprint: { id: string }
  session_ids: string[]
}

describe.each(clusterLogs())('of 20 marked people 5 are erased, on %s', (log) => {
  const everybody = Array.from({ length: people }, (_, n) =>
    markedVisitor(n, createMarks(`person ${n}`)),
  )
  const [gone, others] = [everybody.slice(0, erasedPeople), everybody.slice(erasedPeople)]
  const marksOf = (some: MarkedVisitor[]) => some.map(({ marks }) => marks)
  let folder: string
  let postgres: EmbeddedPostgres
  let cluster: Cluster
  let receiver: WebhookReceiver
  let app: IssuedKey
  let integrator: Integrator
  const serviceId = 'acme-mail'

  // A Postgres of its own: of the one of the test run others write the files.
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-people-'))
    await chmod(folder, 0o755)
    postgres = await startEmbeddedPostgres({
      dataDir: path.join(folder, 'postgres'),
      logger: silent,
    })
    const database = { url: postgres.url, drop: async () => {} }
    const env = {
      TRUSTED_PROXIES: '127.0.0.0/8',
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
      LOG_LEVEL: 'debug',
    }
    cluster = await startCluster({ log, processes: 1, env, database })
    const { slug } = cluster.owner
    const target = ['--type', 'publishable', '--client-target', 'native-ios']
    const made = await cluster.operate<{ id: string; revealed_key: string }>(
      'keys',
      'create',
      slug,
      '--name',
      'App',
      ...target,
    )
    app = { id: made.id, key: made.revealed_key }
    receiver = await startWebhookReceiver({
      choose: ({ body }) => ({
        name: 'echo',
        meaning: 'acknowledged',
        answer: (_request, response) => void response.end(body),
      }),
    })
    await ask('POST', `${organization()}/webhooks/endpoints`, {
      name: 'Receiver',
      url: receiver.url('/'),
      event_types: ['session.fingerprint.calculated', 'session.result.persisted'],
    })
    integrator = await startIntegrator()
    const { data: signups } = await ask('POST', `${organization()}/webhooks/endpoints`, {
      name: 'Signups',
      url: integrator.url('/'),
      event_types: ['gate.session.approved'],
    })
    await ask('POST', '/v1/gate/services', {
      id: serviceId,
      name: 'Acme Mail',
      description: 'Mail.',
      website: 'https://acme.example',
      webhook_endpoint_id: signups.id,
      discoverable: true,
    })
  }, 120_000)
  let stopped = false
  async function stop(): Promise<void> {
    if (stopped) return
    stopped = true
    await cluster?.stop()
    await receiver?.close()
    await integrator?.close()
    await postgres?.stop()
  }
  afterAll(async () => {
    await stop()
    if (folder) await rm(folder, { recursive: true, force: true })
  })

  const organization = () => `/v1/organizations/${cluster.owner.organizationId}`

  async function ask(method: string, asked: string, body?: object) {
    const headers = { authorization: `Bearer ${cluster.owner.secret.key}` }
    const sent = body && {
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }
    const answer = await cluster.fetch(0, asked, { method, headers, ...sent })
    const { data }: { data: AnsweredData } = JSON.parse(await answer.text())
    return { status: answer.status, data }
  }

  const asPage = () => ({
    baseUrl: cluster.baseUrls[0] ?? '',
    publishableKey: cluster.owner.publishable.key,
  })
  const asApp = () => ({ ...asPage(), publishableKey: app.key })
  const visitors = new Map<MarkedVisitor, string[]>()
  const signups = new Map<MarkedVisitor, string>()

  it('whatever a client can say is marked', () => {
    expect(unmarkedMembers()).toEqual([])
  })

  it('they visit by page and app, and are users of the customer', async () => {
    for (const one of everybody) {
      await visitMarked(one, asPage(), 'web')
      await visitMarked(one, asApp(), 'ios')
    }
    for (const one of everybody) {
      const found = []
      for (const id of one.sessionIds)
        found.push(
          await eventually(async () => {
            const { data } = await ask('GET', `/v1/sessions/${id}`)
            expect(data?.visitor_fingerprint).toMatchObject({ id: expect.stringMatching(/^vid_/) })
            return data.visitor_fingerprint.id
          }, patient),
        )
      visitors.set(one, found)
      for (const id of one.sessionIds)
        expect(
          await ask('PATCH', `/v1/sessions/${id}`, { client_user_id: one.userId }),
        ).toMatchObject({
          status: 200,
        })
    }
    expect(new Set([...visitors.values()].flat()).size).toBe(2 * people)
    await eventually(
      () => expect(receiver.requests.length).toBeGreaterThanOrEqual(4 * people),
      patient,
    )
    for (const one of gone) await openMarked(one, asPage())
  }, 300_000)

  it('their agents sign up for a service, and they approve', async () => {
    const gate = { baseUrl: cluster.baseUrls[0] ?? '', serviceId }
    for (const one of everybody) signups.set(one, await signUpMarked(one, gate))
    expect(integrator.accounts.size).toBe(people)
  }, 180_000)

  it('and each of their marks is somewhere', async () => {
    const places = await placesOf(cluster)
    for (const one of [...gone, ...others])
      expect(unseenMembers(one.marks, places).toSorted()).toEqual(neverKept.toSorted())
  }, 120_000)

  it('five are erased, as users or as visitors', async () => {
    for (const one of gone) {
      const ids = visitors.get(one) ?? []
      const paths =
        one.n % 2 === 0
          ? [`users/${encodeURIComponent(one.userId)}`]
          : ids.map((id) => `visitors/${id}`)
      const erased: string[] = []
      for (const some of paths) {
        const { status, data } = await ask('DELETE', `${organization()}/${some}`)
        expect(status).toBe(200)
        erased.push(...data.session_ids)
      }
      expect(erased.toSorted()).toEqual(one.sessionIds.toSorted())
      const signup = signups.get(one) ?? ''
      expect(await cluster.operate('gate', 'erase', signup)).toMatchObject({
        gate_session_ids: [signup],
      })
    }
  }, 120_000)

  it('no byte of them is in tables, topics and logs, opened by every key that there is', async () => {
    const places = await placesOf(cluster)
    expect(await findMarked(marksOf(gone), places)).toEqual([])
    for (const one of others)
      expect(unseenMembers(one.marks, places).toSorted()).toEqual(neverKept.toSorted())
  }, 120_000)

  it('nor in a file or in the write-ahead log, once the bytes that are left behind are gone', async () => {
    for (const name of ['sessions', 'repeats', 'webhooks', 'gate'])
      expect(await cluster.cli(['rebuild', name])).toMatchObject({ code: 0 })
    const pool = createPool({ url: postgres.url })
    for (const [block, statement] of [
      ['anew: sh', /'(vacuum [^']*)'/g],
      ['wal: sh', /-c '([^']*)'/g],
    ] as const)
      for (const [, text = ''] of (await codeBlock('guide/privacy.md', block)).matchAll(statement))
        await pool.query(text)
    await pool.end()
    await stop()
    expect(await findMarked(marksOf(gone), filesOf(folder))).toEqual([])
    const left = await findMarked(marksOf(others.slice(0, 1)), filesOf(folder))
    expect(new Set(left.map(({ place }) => place.split('/')[1]))).toContain('base')
  }, 600_000)
})
