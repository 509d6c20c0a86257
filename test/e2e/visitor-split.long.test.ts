import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Owner, operator } from '../support/cluster.ts'
import { readAs, type Visit, visitAs, visitorOf } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { longAgo } from '../support/long-ago.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { rebuildable, rebuildIsEqual } from '../support/roles.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { fastWebhooks } from '../support/webhook-world.ts'

const home = '198.51.100.1'
const abroad = '203.0.113.7'

describe('devices that are alike', () => {
  let database: TestDatabase
  let settings: Record<string, string>
  let server: ServerProcess
  let owner: Owner
  let receiver: WebhookReceiver

  beforeAll(async () => {
    database = await createTestDatabase({ empty: true })
    receiver = await startWebhookReceiver()
    settings = {
      ...fastWebhooks,
      DATABASE_URL: database.url,
      TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
      KAFKA_BROKERS: '',
      TRUSTED_PROXIES: '127.0.0.1,::1',
    }
    server = await startServerProcess(['serve'], settings)
    owner = await operator(settings).organization()
    const types = ['session.fingerprint.calculated']
    const endpoint = { name: 'Receiver', url: receiver.url('/'), event_types: types }
    const path = `/v1/organizations/${owner.organizationId}/webhooks/endpoints`
    await readAs(reader(), path, { method: 'POST', body: JSON.stringify(endpoint) })
  }, 90_000)

  afterAll(async () => {
    await server?.end('SIGTERM')
    await receiver?.close()
    await database?.drop()
  })

  const reader = () => ({ baseUrl: server.baseUrl, owner })
  const seenAs = (one: Visit) => visitorOf(reader(), one)

  async function visit(
    device: number,
    { of, address = home }: { of?: Visit; address?: string } = {},
  ) {
    const kept = of ? { continuity: of.continuity } : {}
    const done = await visitAs(device, { ...reader(), address, ...kept })
    return { ...done, visitor: await seenAs(done) }
  }

  const told = ({ sessionId }: Visit) =>
    receiver.requests
      .map(({ body }) => JSON.parse(body))
      .filter(({ data }) => data.session.id === sessionId)
      .map(({ id, data }) => ({ id, visitor: data.visitor_fingerprint.id }))

  it('a private window beside an ordinary one is its own visitor at once', async () => {
    const first = await visit(1)
    const again = await visit(1, { of: first })
    const second = await visit(1)
    const back = await visit(1, { of: second })
    expect(again.visitor).toBe(first.visitor)
    expect(second.visitor).not.toBe(first.visitor)
    expect(back.visitor).toBe(second.visitor)
    const { sessionId } = second
    expect(await readAs(reader(), `/v1/sessions/${sessionId}`)).toMatchObject({
      visitor_fingerprint: {
        confidence: 50,
        resolution: { method: 'new', basis: 'probabilistic' },
      },
    })
  }, 60_000)

  it('whose storage comes back keeps its visitor, and who was taken for it gets another', async () => {
    const first = await visit(2)
    const undo = await longAgo(database.pool, [first.sessionId])
    const other = await visit(2)
    expect(other.visitor).toBe(first.visitor)
    const again = await visit(2, { of: first })
    expect(again.visitor).toBe(first.visitor)
    await eventually(async () => expect(await seenAs(other)).not.toBe(first.visitor))
    const back = await visit(2, { of: other })
    expect(back.visitor).toBe(await seenAs(other))
    await eventually(() =>
      expect(told(other).map(({ visitor }) => visitor)).toEqual([first.visitor, back.visitor]),
    )
    expect(new Set(told(other).map(({ id }) => id)).size).toBe(2)
    const lifecycles = await Promise.all(
      [first, back].map(({ visitor }) => readAs(reader(), `/v1/fingerprints/${visitor}`)),
    )
    expect(lifecycles).toMatchObject([
      { lifecycle: { seen_count: 2 } },
      { lifecycle: { seen_count: 2 } },
    ])
    await undo()
  }, 60_000)

  it('and in two networks within minutes are two at once', async () => {
    const here = await visit(3)
    const there = await visit(3, { address: abroad })
    expect(there.visitor).not.toBe(here.visitor)
  }, 60_000)

  const correct = (visitor: string, kind: 'splits' | 'merges', body: object) =>
    readAs(reader(), `/v1/organizations/${owner.organizationId}/visitors/${visitor}/${kind}`, {
      method: 'POST',
      body: JSON.stringify({ reason: 'They called us.', ...body }),
    })

  it('two people at one browser are parted by hand, and stay so', async () => {
    const first = await visit(4)
    const again = await visit(4, { of: first })
    const other = await visit(4, { of: first })
    expect([again.visitor, other.visitor]).toEqual([first.visitor, first.visitor])
    const parted = await correct(first.visitor, 'splits', { session_ids: [other.sessionId] })
    const visitor = await seenAs(other)
    expect(parted).toMatchObject({ visitor_id: first.visitor, new_visitor_id: visitor })
    expect(visitor).not.toBe(first.visitor)
    await eventually(() =>
      expect(told(other).map((one) => one.visitor)).toEqual([first.visitor, visitor]),
    )
    expect([await seenAs(first), await seenAs(again)]).toEqual([first.visitor, first.visitor])
    // Whose storage it is was said of the last session, and a look alone may be of either.
    expect((await visit(4, { of: first })).visitor).toBe(visitor)
    expect([first.visitor, visitor]).not.toContain((await visit(4)).visitor)
  }, 60_000)

  it('two browsers of one person are one visitor by hand, and no storage that comes back parts them', async () => {
    const desk = await visit(5)
    const away = await visit(6, { address: abroad })
    expect(away.visitor).not.toBe(desk.visitor)
    const merged = await correct(desk.visitor, 'merges', { visitor_id: away.visitor })
    expect(merged).toMatchObject({ merged_visitor_id: away.visitor, session_ids: [away.sessionId] })
    expect(await seenAs(away)).toBe(desk.visitor)
    const turns = [desk, away, desk, away]
    for (const of of turns)
      expect(
        (await visit(of === desk ? 5 : 6, { of, address: of === desk ? home : abroad })).visitor,
      ).toBe(desk.visitor)
    expect(await readAs(reader(), `/v1/fingerprints/${desk.visitor}`)).toMatchObject({
      lifecycle: { seen_count: 6 },
    })
    await expect(readAs(reader(), `/v1/fingerprints/${away.visitor}`)).rejects.toThrow('404')
    const log = await readAs(reader(), `/v1/organizations/${owner.organizationId}/audit-log`)
    expect(log).toContainEqual(
      expect.objectContaining({
        type: 'VisitorCorrected',
        subject_id: desk.visitor,
        actor: { type: 'key', id: owner.secret.id },
      }),
    )
  }, 60_000)

  it('whoever has kept the id of a merged visitor learns where it went, while that one is there', async () => {
    const [one, two, three] = [
      await visit(7),
      await visit(8, { address: abroad }),
      await visit(9, { address: '192.0.2.7' }),
    ]
    await correct(two.visitor, 'merges', { visitor_id: one.visitor })
    await correct(three.visitor, 'merges', { visitor_id: two.visitor })
    const errorFor = async (key: string, visitor: string) => {
      const headers = { authorization: `Bearer ${key}` }
      const answer = await fetch(`${server.baseUrl}/v1/fingerprints/${visitor}`, { headers })
      const { error }: { error: { details?: object } } = JSON.parse(await answer.text())
      return { status: answer.status, details: error.details }
    }
    const { key } = owner.secret
    const into = { status: 404, details: { merged_into: three.visitor } }
    expect(await errorFor(key, one.visitor)).toEqual(into)
    expect(await errorFor(key, two.visitor)).toEqual(into)
    const nothing = { status: 404, details: undefined }
    const scopes = ['fingerprints:read']
    const made = z.object({ revealed_key: z.string() }).parse(
      await readAs(reader(), `/v1/organizations/${owner.organizationId}/api-keys`, {
        method: 'POST',
        body: JSON.stringify({ name: 'Test', type: 'secret', environment: 'test', scopes }),
      }),
    )
    expect(await errorFor(made.revealed_key, one.visitor)).toEqual(nothing)
    await readAs(reader(), `/v1/organizations/${owner.organizationId}/visitors/${three.visitor}`, {
      method: 'DELETE',
    })
    expect(await errorFor(key, one.visitor)).toEqual(nothing)
  }, 60_000)

  it.each(rebuildable)(
    'a rebuild of %s repeats it',
    (name) => rebuildIsEqual(settings, name),
    60_000,
  )
})
