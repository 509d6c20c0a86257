import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { webhookEventId } from '../../infra/ids.ts'
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../infra/local/embedded-postgres.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import type { CollectClient } from '../../infra/wire/collect/client.ts'
import { type Cluster, clusterLogs, startCluster } from '../support/cluster.ts'
import { codeBlock } from '../support/code-block.ts'
import { visitAs, visitorOf } from '../support/devices.ts'
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
import { needs } from '../support/needs.ts'
import { silent } from '../support/projections.ts'
import { rebuildable, rebuildIsEqual } from '../support/roles.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

const patient = { timeoutMs: 60_000, intervalMs: 200 }
const [people, erasedPeople] = [20, 5]
const eventTypes = ['session.fingerprint.calculated', 'session.result.persisted']

/** Values that no place has, also of people who are not erased: the server keeps none of them, or others stand for them. */
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

interface Receipt {
  id: string
  session_ids: string[]
  counts: { sessions: number; open_sessions: number; visitors: number; views?: number }
}

describe.each(clusterLogs())('of 20 marked people 5 are erased, on %s', (log) => {
  const everybody = Array.from({ length: people }, (_, n) =>
    markedVisitor(n, createMarks(`person ${n}`)),
  )
  const [gone, others] = [everybody.slice(0, erasedPeople), everybody.slice(erasedPeople)]
  const marksOf = (some: MarkedVisitor[]) => some.map(({ marks }) => marks)
  const sessionsOf = (some: MarkedVisitor[]) => some.flatMap(({ sessionIds }) => sessionIds)
  /** Those of the page and of the app. */
  const visitors = new Map<MarkedVisitor, string[]>()
  const signups = new Map<MarkedVisitor, string>()
  const receipts: Receipt[] = []
  const clients: CollectClient[] = []
  const folder = temporaryFolder('erasure')
  let postgres: EmbeddedPostgres
  let cluster: Cluster
  let receiver: WebhookReceiver
  let integrator: Integrator
  let appKey: string
  let before: unknown

  // A Postgres of its own: others write the files of the test run's.
  beforeAll(async () => {
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
    cluster = await startCluster({ log, processes: 2, env, database })
    const app = ['--name', 'App', '--type', 'publishable', '--client-target', 'native-ios']
    const create = ['keys', 'create', cluster.owner.slug, ...app]
    appKey = (await cluster.operate<{ revealed_key: string }>(...create)).revealed_key
    // Answers with what it was told, which is then recorded.
    receiver = await startWebhookReceiver({
      choose: ({ body }) => ({
        name: 'echo',
        meaning: 'acknowledged',
        answer: (_request, response) => void response.end(body),
      }),
    })
    integrator = await startIntegrator()
    await cluster.createEndpoint(receiver.url('/'), eventTypes)
    await cluster.createGateService(integrator.url('/'), { id: 'acme-mail' })
  }, 120_000)
  let isStopped = false
  async function stop(): Promise<void> {
    if (isStopped) return
    isStopped = true
    await cluster?.stop()
    await receiver?.close()
    await integrator?.close()
    await postgres?.stop()
  }
  afterAll(stop)

  const organization = () => `/v1/organizations/${cluster.owner.organizationId}`
  const page = (server = 0) => ({
    baseUrl: cluster.baseUrls[server] ?? '',
    publishableKey: cluster.owner.publishable.key,
  })
  const app = () => ({ ...page(), publishableKey: appKey })

  const pathsOf = (one: MarkedVisitor): string[] =>
    one.n % 2 === 0
      ? [`${organization()}/users/${encodeURIComponent(one.userId)}`]
      : (visitors.get(one) ?? []).map((id) => `${organization()}/visitors/${id}`)

  /** Says whose session it is, once it is decided. Returns its visitor. */
  async function attachUser({ userId }: MarkedVisitor, sessionId: string): Promise<string> {
    const visitor = await visitorOf(cluster, { sessionId })
    const body = { client_user_id: userId }
    await cluster.read(`/v1/sessions/${sessionId}`, { method: 'PATCH', body })
    return visitor
  }

  async function erase(path: string): Promise<Receipt> {
    const receipt = await cluster.read<Receipt>(path, { method: 'DELETE' })
    receipts.push(receipt)
    return receipt
  }

  /** Returns the sessions whose data keys are gone: of those who are erased, also from consent pages. */
  async function sessionsWithoutKey(): Promise<string[]> {
    const { rows } = await cluster.pool.query<{ session_id: string }>(
      'select session_id from tidegate_keys.session_keys where sealed_key is null',
    )
    return rows.map(({ session_id }) => session_id)
  }

  /** Everything that a back end can read of people who stay. */
  async function everythingOf(some: MarkedVisitor[]): Promise<unknown> {
    const sessions = sessionsOf(some)
    const people = some.flatMap((one) => visitors.get(one) ?? [])
    const paths = [
      ...sessions.map((id) => `/v1/sessions/${id}`),
      ...people.map((id) => `/v1/fingerprints/${id}`),
      ...sessions.flatMap((id) =>
        eventTypes.map((type) => `${organization()}/events/${webhookEventId(type, id)}`),
      ),
    ]
    const answers: unknown[] = []
    for (const path of paths) answers.push(await cluster.read(path))
    for (const [path, ids] of [
      ['/v1/sessions', sessions],
      ['/v1/fingerprints', people],
    ] as const) {
      const listed = await cluster.read<{ id: string }[]>(`${path}?limit=200`)
      answers.push(listed.filter(({ id }) => ids.includes(id)))
    }
    return answers
  }

  it('whatever a client can say is marked', () => {
    expect(unmarkedMembers()).toEqual([])
  })

  it('they visit by page and app, are known again, and are users of the customer', async () => {
    for (const one of everybody) {
      await visitMarked(one, page(), 'web')
      await visitMarked(one, app(), 'ios')
      await visitMarked(one, page(1), 'web')
    }
    for (const one of everybody) {
      const found: string[] = []
      for (const id of one.sessionIds) found.push(await attachUser(one, id))
      const [first = '', ofApp = '', again] = found
      expect(again).toBe(first)
      visitors.set(one, [first, ofApp])
    }
    expect(new Set([...visitors.values()].flat()).size).toBe(2 * people)
    for (const id of sessionsOf(everybody))
      await eventually(async () => {
        const event = webhookEventId('session.result.persisted', id)
        expect(await cluster.read(`${organization()}/events/${event}`)).toMatchObject({
          webhook_deliveries: [{ status: 'succeeded' }],
        })
      }, patient)
  }, 300_000)

  function viewOf(one: MarkedVisitor): { name: string; query: string } {
    const [visitor = ''] = visitors.get(one) ?? []
    const filter = one.n % 2 === 0 ? { client_user_id: one.userId } : { visitor_id: visitor }
    return { name: `Person ${one.n}`, query: new URLSearchParams(filter).toString() }
  }

  it('analysts save views that name them', async () => {
    for (const one of everybody)
      await cluster.read(`${organization()}/views`, { method: 'POST', body: viewOf(one) })
  })

  it('their agents sign up for a service, and they approve', async () => {
    const gate = { baseUrl: cluster.baseUrl, serviceId: 'acme-mail' }
    for (const one of everybody) signups.set(one, await signUpMarked(one, gate))
    expect(integrator.accounts.size).toBe(people)
    before = await everythingOf(others)
  }, 180_000)

  it('each of their marks is somewhere, and everything about one is exported', async () => {
    const places = await placesOf(cluster)
    for (const one of everybody)
      expect(unseenMembers(one.marks, places).toSorted()).toEqual(neverKept.toSorted())
    for (const one of gone.slice(0, 2)) {
      const exported = await Promise.all(
        pathsOf(one).map((path) => cluster.read<{ sessions: { id: string }[] }>(`${path}/export`)),
      )
      const ids = exported.flatMap(({ sessions }) => sessions.map(({ id }) => id))
      expect(ids.toSorted()).toEqual(one.sessionIds.toSorted())
      const bytes = Buffer.from(JSON.stringify(exported))
      const found = await findMarked(marksOf(everybody), [{ name: 'export', bytes }])
      expect(new Set(found.map(({ secret }) => secret.split(':')[0]))).toEqual(
        new Set([one.marks.name]),
      )
    }
  }, 120_000)

  it('five are erased, as users or as visitors, with the sessions that are under way', async () => {
    for (const one of gone) {
      // By another process than the one that erases, and with what only the browser kept.
      clients.push(await visitMarked(one, page(1), 'web'))
      await attachUser(one, one.sessionIds.at(-1) ?? '')
      clients.push(await openMarked(one, page(1)))
      const erased: Receipt[] = []
      for (const path of pathsOf(one)) {
        erased.push(await erase(path))
        expect(JSON.stringify(erased)).not.toContain(one.userId)
        expect(await cluster.read(path, { method: 'DELETE' })).toEqual(erased.at(-1))
        expect((await cluster.ask(`${path}/export`)).status).toBe(404)
      }
      const ids = erased.flatMap(({ session_ids }) => session_ids)
      expect(ids.toSorted()).toEqual(one.sessionIds.toSorted())
      const sum = (count: keyof Receipt['counts']) =>
        erased.reduce((all, { counts }) => all + (counts[count] ?? 0), 0)
      expect([sum('sessions'), sum('open_sessions'), sum('visitors')]).toEqual([
        one.sessionIds.length,
        1,
        2,
      ])
      const signup = signups.get(one) ?? ''
      expect(await cluster.operate('gate', 'erase', signup)).toMatchObject({
        gate_session_ids: [signup],
      })
    }
    for (const client of clients)
      await expect(client.sendBatch({ version: 1, elapsed_ms: 7 })).rejects.toMatchObject({
        status: 410,
        nextAction: 'new_session',
      })
  }, 300_000)

  it('the views that name them are deleted, and counted', async () => {
    const left = await cluster.read<{ name: string }[]>(`${organization()}/views`)
    expect(left.map(({ name }) => name)).toEqual(others.map(({ n }) => `Person ${n}`))
    expect(receipts.reduce((sum, { counts }) => sum + (counts.views ?? 0), 0)).toBe(erasedPeople)
  })

  it('who opens another session with what the browser kept is found by the next DELETE', async () => {
    const [, one] = gone
    const [visitor] = (one && visitors.get(one)) ?? []
    if (!one || !visitor) throw new Error('nobody')
    const client = await openMarked(one, page(1))
    const path = `${organization()}/visitors/${visitor}`
    const receipt = await erase(path)
    expect(receipt).toMatchObject({
      session_ids: one.sessionIds.slice(-1),
      counts: { sessions: 1, open_sessions: 1, visitors: 0 },
    })
    await expect(client.sendBatch({ version: 1, elapsed_ms: 7 })).rejects.toMatchObject({
      status: 410,
    })
    expect(await cluster.read(path, { method: 'DELETE' })).toEqual(receipt)
  })

  it('the audit log says who erased them, and by which request', async () => {
    const entries = await cluster.read<{ subject_id: string }[]>(
      `${organization()}/audit-log?limit=200`,
    )
    for (const { id } of receipts)
      expect(entries.filter(({ subject_id }) => subject_id === id)).toEqual([
        expect.objectContaining({
          type: 'VisitorErased',
          actor: { type: 'key', id: cluster.owner.secret.id },
          request_id: expect.stringMatching(/^req_/),
        }),
      ])
  })

  it('nobody reads anything of them any more, and of everybody else the same', async () => {
    for (const path of [
      ...sessionsOf(gone).map((id) => `/v1/sessions/${id}`),
      ...gone.flatMap((one) => visitors.get(one) ?? []).map((id) => `/v1/fingerprints/${id}`),
    ])
      expect((await cluster.ask(path)).status).toBe(404)
    const listed = await cluster.read<{ id: string }[]>('/v1/sessions?limit=200')
    expect(listed.filter(({ id }) => sessionsOf(gone).includes(id))).toEqual([])
    expect(await everythingOf(others)).toEqual(before)
    const erased = await sessionsWithoutKey()
    expect(erased).toEqual(
      expect.arrayContaining(receipts.flatMap(({ session_ids }) => session_ids)),
    )
    expect(erased.filter((id) => sessionsOf(others).includes(id))).toEqual([])
  }, 120_000)

  it('no byte of them is in tables, topics and logs, opened by every key that there is', async () => {
    const places = await placesOf(cluster)
    expect(await findMarked(marksOf(gone), places)).toEqual([])
    for (const one of others)
      expect(unseenMembers(one.marks, places).toSorted()).toEqual(neverKept.toSorted())
  }, 120_000)

  it('an analyst opens what is left, and sees what was erased marked', async () => {
    const scored = ['events', '--topic', 'tidegate.sessions.v1', '--type', 'SessionScored']
    const printed = async (...args: string[]) => {
      const { code, stdout } = await cluster.cli([...scored, ...args])
      expect(code).toBe(0)
      return stdout.trim()
    }
    const parsed = (lines: string) => lines.split('\n').map((line) => JSON.parse(line))
    expect(new Set(parsed(await printed()).map(({ sealed }) => sealed))).toEqual(
      new Set(['closed']),
    )
    const opened = await printed('--open')
    const erased = await sessionsWithoutKey()
    for (const { sealed, data } of parsed(opened)) {
      const isErased = erased.includes(data.session_id)
      expect([sealed, data.request === null]).toEqual(
        isErased ? ['erased', true] : [undefined, false],
      )
    }
    const script = await codeBlock('guide/erasure.md', 'events: python')
    if (!needs('python').areMet) return
    const rows = parsed(
      execFileSync('python3', ['-c', script], { input: opened, encoding: 'utf8' }).trim(),
    )
    expect(rows.length).toBe(parsed(opened).length)
    for (const row of rows) expect('address' in row).toBe(!erased.includes(row.session))
  }, 120_000)

  it.each(rebuildable)(
    'a rebuild of %s changes nothing',
    (name) => rebuildIsEqual(cluster.settings, name),
    300_000,
  )

  it('who comes back with what their browser kept is somebody new', async () => {
    const address = '198.51.100.7'
    const first = await visitAs(cluster, 99, { address })
    const visitor = await visitorOf(cluster, first)
    await erase(`${organization()}/visitors/${visitor}`)
    const { continuity } = first
    expect(await visitorOf(cluster, await visitAs(cluster, 99, { address, continuity }))).not.toBe(
      visitor,
    )
    expect(await everythingOf(others)).toEqual(before)
  }, 120_000)

  it('no byte of them is in a file or in the write-ahead log, once what is left behind is gone', async () => {
    const pool = createPool({ url: postgres.url })
    for (const [block, statement] of [
      ['anew: sh', /'(vacuum [^']*)'/g],
      ['wal: sh', /-c '([^']*)'/g],
    ] as const)
      for (const [, text = ''] of (await codeBlock('guide/retention.md', block)).matchAll(
        statement,
      ))
        await pool.query(text)
    await pool.end()
    await stop()
    expect(await findMarked(marksOf(gone), filesOf(folder))).toEqual([])
    const left = await findMarked(marksOf(others.slice(0, 1)), filesOf(folder))
    expect(new Set(left.map(({ place }) => place.split('/')[1]))).toContain('base')
  }, 600_000)
})
