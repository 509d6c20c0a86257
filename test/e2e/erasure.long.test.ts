import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { webhookEventId } from '../../infra/ids.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import type { CollectClient } from '../../infra/wire/collect/client.ts'

import { projections } from '../../services/server/dependencies.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { codeBlock } from '../support/code-block.ts'
import { clientAs } from '../support/devices.ts'
import { dumpDatabase, dumpDatabaseFiles } from '../support/dump.ts'
import { eventually } from '../support/eventually.ts'
import { needs } from '../support/needs.ts'
import { openedRecords, type PersonOf, person, placesOf, visitOf } from '../support/people.ts'
import {
  type ReceiverOptions,
  startWebhookReceiver,
  type WebhookReceiver,
} from '../support/webhook-receiver.ts'

const patient = { timeoutMs: 60_000, intervalMs: 200 }
const people = 100
const visitsEach = 10
const erasedPeople = 10
const atOnce = 8
const hasPython = needs('python').areMet
/** What holds rows of sessions. */
const rebuilt = [...projections.map(({ name }) => name), 'scoring']

const eventTypes = ['session.fingerprint.calculated', 'session.result.persisted']

const echo: ReceiverOptions['choose'] = ({ body }) => ({
  name: 'echo',
  meaning: 'acknowledged',
  answer: (_request, response) => void response.end(body),
})

/** What the answers may have that the tests look into. */
interface AnsweredData {
  id: string
  visitor_fingerprint: { id: string } | null
  session_ids: string[]
  counts: Record<string, number>
  sessions: { id: string; link: object }[]
  corrections: object[]
  webhook_deliveries: object[]
}

interface Answer {
  status: number
  data: AnsweredData
}

/** The same of a row of a list; of the audit log it says what an entry is about. */
interface Listed {
  id: string
  subject_id?: string
}

describe('people are erased', () => {
  const everybody = Array.from({ length: people }, (_, n) => person(n))
  const [gone, others] = [everybody.slice(0, erasedPeople), everybody.slice(erasedPeople)]
  const visitorIds = new Map<PersonOf, string>()
  const receipts = new Map<
    PersonOf,
    { id: string; session_ids: string[]; counts: Record<string, number> }
  >()
  let cluster: Cluster
  let receiver: WebhookReceiver
  let before: unknown

  beforeAll(async () => {
    const env = { TRUSTED_PROXIES: '127.0.0.0/8', WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' }
    cluster = await startCluster({ log: 'postgres', processes: 2, env })
    // Answers with what it was told, which is then recorded.
    receiver = await startWebhookReceiver({ choose: echo })
    const endpoint = { name: 'Receiver', url: receiver.url('/'), event_types: eventTypes }
    await ask('POST', `${organization()}/webhooks/endpoints`, endpoint)
  }, 120_000)

  afterAll(async () => {
    await cluster?.stop()
    await receiver?.close()
  })

  const organization = () => `/v1/organizations/${cluster.owner.organizationId}`

  async function ask(method: string, path: string, body?: object): Promise<Answer> {
    const headers = {
      authorization: `Bearer ${cluster.owner.secret.key}`,
      'content-type': 'application/json',
    }
    const init =
      body === undefined
        ? { headers: { authorization: headers.authorization } }
        : { headers, body: JSON.stringify(body) }
    const answer = await cluster.fetch(0, path, { method, ...init })
    return { status: answer.status, data: JSON.parse(await answer.text()).data }
  }

  const read = async (path: string) => (await ask('GET', path)).data
  const eventOf = (type: string, sessionId: string) =>
    read(`${organization()}/events/${webhookEventId(type, sessionId)}`)
  const sessionsOf = (some: PersonOf[]) =>
    some.flatMap(({ visits }) => visits.map(({ sessionId }) => sessionId))
  const visit = (someone: PersonOf) =>
    visitOf(someone, { baseUrl: cluster.baseUrls[0] ?? '', owner: cluster.owner })

  const visitorOf = (sessionId: string) =>
    eventually(async () => {
      const { visitor_fingerprint: visitor } = await read(`/v1/sessions/${sessionId}`)
      expect(visitor).toMatchObject({ id: expect.stringMatching(/^vid_/) })
      return visitor?.id ?? ''
    }, patient)

  // Opens a session with what the browser kept of its first visit, and sends nothing.
  async function openAs(someone: PersonOf): Promise<CollectClient> {
    const continuity = someone.visits[0]?.continuity ?? ''
    const baseUrl = cluster.baseUrls.at(-1) ?? ''
    const { client } = clientAs(someone.n, {
      baseUrl,
      owner: cluster.owner,
      ...someone,
      continuity,
    })
    const { sessionId } = await client.open()
    someone.visits.push({ sessionId, continuity })
    return client
  }

  async function each<T>(some: T[], work: (one: T) => Promise<unknown>): Promise<void> {
    const left = [...some]
    const worker = async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) await work(next)
    }
    await Promise.all(Array.from({ length: atOnce }, worker))
  }

  /** Everything that a back end can read of these people. */
  async function everythingOf(some: PersonOf[]): Promise<unknown> {
    const sessions = new Set(sessionsOf(some))
    const answers: Record<string, unknown> = {}
    await each([...sessions], async (id) => {
      answers[id] = await read(`/v1/sessions/${id}`)
    })
    await each(some, async (one) => {
      answers[`visitor ${one.n}`] = await read(`/v1/fingerprints/${visitorIds.get(one)}`)
    })
    const listed = await list('/v1/sessions')
    const visitors = await list('/v1/fingerprints')
    const known = new Set(some.map((one) => visitorIds.get(one)))
    answers.sessions = listed.filter(({ id }) => sessions.has(id))
    answers.visitors = visitors.filter(({ id }) => known.has(id))
    await each([...sessions], async (id) => {
      for (const type of eventTypes) answers[`${type} ${id}`] = await eventOf(type, id)
    })
    return answers
  }

  async function list(path: string): Promise<Listed[]> {
    const rows: Listed[] = []
    let cursor: string | undefined
    do {
      const query = `limit=200${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`
      const headers = { authorization: `Bearer ${cluster.owner.secret.key}` }
      const answer = JSON.parse(
        await (await cluster.fetch(0, `${path}?${query}`, { headers })).text(),
      )
      rows.push(...answer.data)
      cursor = answer.pagination?.next_cursor
    } while (cursor)
    return rows
  }

  it(`${people} people visit, and everybody is known again`, async () => {
    for (let round = 0; round < visitsEach; round++) await each(everybody, visit)
    // Session by session, because to ask for all of them again and again keeps the server from deciding any.
    await each(everybody, async (one) => {
      const ids = new Set<string>()
      for (const id of sessionsOf([one])) ids.add(await visitorOf(id))
      expect(ids.size).toBe(1)
      visitorIds.set(one, [...ids][0] ?? '')
      for (const id of sessionsOf([one]))
        await ask('PATCH', `/v1/sessions/${id}`, { client_user_id: one.userId })
    })
    await each(sessionsOf(everybody), (id) =>
      eventually(async () => {
        const event = await eventOf('session.result.persisted', id)
        expect(event?.webhook_deliveries).toMatchObject([{ status: 'succeeded' }])
      }, patient),
    )
    before = await everythingOf(others)
  }, 600_000)

  it('and everything about one is exported', async () => {
    const [one] = gone
    if (!one) throw new Error('nobody')
    for (const path of [
      `visitors/${visitorIds.get(one)}`,
      `users/${encodeURIComponent(one.userId)}`,
    ]) {
      const exported = await read(`${organization()}/${path}/export`)
      expect(exported.sessions.map(({ id }) => id).toSorted()).toEqual(sessionsOf([one]).toSorted())
      const text = JSON.stringify(exported)
      for (const said of [one.address, one.url, one.agent, one.userId]) expect(text).toContain(said)
      for (const other of others.slice(0, 5)) expect(text).not.toContain(other.userId)
    }
  }, 60_000)

  it('some are erased, as visitors or as users', async () => {
    const [underWay] = gone
    if (!underWay) throw new Error('nobody')
    // By another process than the one that erases, where there are several.
    const { client } = clientAs(underWay.n, {
      baseUrl: cluster.baseUrls.at(-1) ?? '',
      owner: cluster.owner,
      ...underWay,
      continuity: underWay.visits.at(-1)?.continuity ?? '',
    })
    const { sessionId } = await client.open()
    await client.sendBatch({ version: 1, elapsed_ms: 5 })
    await client.requestResult({ version: 1, elapsed_ms: 6 })
    underWay.visits.push({ sessionId, continuity: '' })
    await eventually(
      async () => expect(await read(`/v1/sessions/${sessionId}`)).toBeDefined(),
      patient,
    )

    const opened = new Map<PersonOf, CollectClient>()
    for (const one of gone) {
      // Open, and nothing decided about it: only what the client kept says whose it is.
      opened.set(one, await openAs(one))
      const path =
        one.n % 2 === 0
          ? `visitors/${visitorIds.get(one)}`
          : `users/${encodeURIComponent(one.userId)}`
      const { status, data } = await ask('DELETE', `${organization()}/${path}`)
      expect(status).toBe(200)
      expect(data.session_ids.toSorted()).toEqual(sessionsOf([one]).toSorted())
      const counts = { sessions: sessionsOf([one]).length, open_sessions: 1, visitors: 1 }
      expect(data.counts).toMatchObject(counts)
      expect(JSON.stringify(data)).not.toContain(one.userId)
      receipts.set(one, data)
      expect((await ask('DELETE', `${organization()}/${path}`)).data).toEqual(data)
      expect((await ask('GET', `${organization()}/${path}/export`)).status).toBe(404)
    }
    for (const ended of [client, ...opened.values()])
      await expect(ended.sendBatch({ version: 1, elapsed_ms: 7 })).rejects.toMatchObject({
        status: 410,
        nextAction: 'new_session',
      })
  }, 120_000)

  it('who opens another session with what the browser kept is found by the next DELETE', async () => {
    const [one] = gone
    if (!one) throw new Error('nobody')
    const earlier = sessionsOf([one])
    const client = await openAs(one)
    const path = `${organization()}/visitors/${visitorIds.get(one)}`
    const { status, data } = await ask('DELETE', path)
    expect(status).toBe(200)
    const since = sessionsOf([one]).filter((id) => !earlier.includes(id))
    expect(data).toMatchObject({
      session_ids: since,
      counts: { sessions: 1, open_sessions: 1, visitors: 0 },
    })
    await expect(client.sendBatch({ version: 1, elapsed_ms: 7 })).rejects.toMatchObject({
      status: 410,
    })
    expect((await ask('DELETE', path)).data).toEqual(data)
    receipts.set({ ...one }, data)
  })

  it('the audit log says who erased them, and by which request', async () => {
    const entries = await list(`${organization()}/audit-log`)
    for (const receipt of receipts.values())
      expect(entries.filter(({ subject_id }) => subject_id === receipt.id)).toEqual([
        expect.objectContaining({
          type: 'VisitorErased',
          actor: { type: 'key', id: expect.stringMatching(/^key_/) },
          request_id: expect.stringMatching(/^req_/),
        }),
      ])
    // One of them twice.
    expect(receipts.size).toBe(erasedPeople + 1)
  })

  it('nobody reads anything of them any more, and of everybody else the same', async () => {
    for (const id of sessionsOf(gone))
      expect((await ask('GET', `/v1/sessions/${id}`)).status).toBe(404)
    for (const one of gone) {
      expect((await ask('GET', `/v1/fingerprints/${visitorIds.get(one)}`)).status).toBe(404)
      expect(await list(`/v1/sessions`)).not.toContainEqual(
        expect.objectContaining({ client_user_id: one.userId }),
      )
    }
    expect(await everythingOf(others)).toEqual(before)
  }, 300_000)

  it.each(rebuilt)(
    'a rebuild of %s changes nothing',
    async (name) => {
      const { code, stdout, stderr } = await cluster.cli(['rebuild', name])
      expect({ code, stdout, stderr }).toMatchObject({ code: 0 })
    },
    300_000,
  )

  it('and everybody else reads the same', async () => {
    expect(await everythingOf(others)).toEqual(before)
  }, 300_000)

  it('no byte of them is in the database, opened by every key that there is', async () => {
    const { DATABASE_URL: url = '' } = cluster.settings
    const places = [...(await dumpDatabase(url)), ...(await openedRecords(cluster))]
    for (const one of others.slice(0, 3)) expect(placesOf(one.marks, places)).not.toEqual([])
    expect(
      placesOf(
        gone.flatMap(({ marks }) => marks),
        places,
      ),
    ).toEqual([])
  }, 300_000)

  it('nor in the files of the database, once its tables are made anew', async () => {
    const pool = createPool({ url: cluster.settings.DATABASE_URL ?? '' })
    const block = await codeBlock('guide/privacy.md', 'anew: sh')
    const statements = [...block.matchAll(/'(vacuum [^']*)'/g)].flatMap(
      ([, statement]) => statement ?? [],
    )
    expect(statements.length).toBe(2)
    const marksOf = (people: typeof others) => people.flatMap(({ marks }) => marks)
    // A vacuum keeps rows that an older transaction may still see.
    await eventually(async () => {
      for (const statement of statements) await pool.query(statement)
      const files = await dumpDatabaseFiles(pool)
      expect(placesOf(marksOf(others.slice(0, 3)), files)).not.toEqual([])
      expect(placesOf(marksOf(gone), files)).toEqual([])
    })
    await pool.end()
  }, 300_000)

  it('an analyst opens what is left, and sees what was erased marked', async () => {
    const scored = ['--topic', 'tidegate.sessions.v1', '--type', 'SessionScored']
    const lines = async (...args: string[]) => {
      const { code, stdout } = await cluster.cli(['events', ...scored, ...args])
      expect(code).toBe(0)
      return stdout.trim().split('\n')
    }
    const closed = (await lines()).map((line) => JSON.parse(line))
    expect(new Set(closed.map(({ sealed }) => sealed))).toEqual(new Set(['closed']))
    const opened = await lines('--open')
    const erased = new Set(sessionsOf(gone))
    for (const { sealed, data } of opened.map((line) => JSON.parse(line))) {
      expect(sealed).toBe(erased.has(data.session_id) ? 'erased' : undefined)
      if (erased.has(data.session_id)) expect(data.request).toBeNull()
      else expect(data.request.url).toMatch(/person/)
    }
    const script = await codeBlock('guide/privacy.md', 'events: python')
    if (!hasPython) return
    const printed = execFileSync('python3', ['-c', script], {
      input: opened.join('\n'),
      encoding: 'utf8',
    })
    const rows = printed
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(rows.length).toBe(opened.length)
    for (const row of rows) expect('address' in row).toBe(!erased.has(row.session))
  }, 120_000)

  it('of those that are left two are said to be one', async () => {
    const [one, other] = others.map((some) => visitorIds.get(some))
    const path = `${organization()}/visitors/${one}/merges`
    const { status } = await ask('POST', path, { visitor_id: other, reason: 'One person.' })
    expect(status).toBe(201)
  })

  it('what was corrected is exported, with how each session came to be theirs', async () => {
    const [one, other] = others
    if (!one || !other) throw new Error('nobody')
    const [kept, gone] = [visitorIds.get(one), visitorIds.get(other)]
    const exported = await read(`${organization()}/visitors/${kept}/export`)
    expect(exported.corrections).toEqual([
      {
        kind: 'merge',
        visitor_id: kept,
        other_visitor_id: gone,
        reason: 'One person.',
        session_ids: sessionsOf([other]).toSorted(),
        corrected_at: expect.any(String),
      },
    ])
    for (const { id, link } of exported.sessions)
      expect(link).toMatchObject({
        visitor_id: kept,
        components: { webgl_renderer: expect.stringMatching(/^[0-9a-f]{12}$/) },
        merged_at: sessionsOf([other]).includes(id) ? expect.any(String) : null,
      })
  })

  it('who comes back is somebody new', async () => {
    const [one] = gone
    if (!one) throw new Error('nobody')
    const { sessionId } = await visit(one)
    const detail = await eventually(async () => {
      const found = await read(`/v1/sessions/${sessionId}`)
      expect(found?.visitor_fingerprint).toMatchObject({ id: expect.any(String) })
      return found
    }, patient)
    expect([...visitorIds.values()]).not.toContain(detail.visitor_fingerprint?.id)
    const pool = createPool({ url: cluster.settings.DATABASE_URL ?? '' })
    const { rows } = await pool.query(
      'select from tidegate_keys.session_keys where sealed_key is null',
    )
    await pool.end()
    expect(rows.length).toBe(
      [...receipts.values()].flatMap(({ session_ids }) => session_ids).length,
    )
  }, 60_000)
})
