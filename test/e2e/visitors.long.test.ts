import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cli } from '../support/cli.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { type Visit, visitAs, visitorOf } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { longAgo } from '../support/long-ago.ts'
import { rebuildable, rebuildIsEqual } from '../support/roles.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { fastWebhooks } from '../support/webhook-world.ts'

const home = '198.51.100.1'
const abroad = '203.0.113.7'

interface Seen extends Visit {
  visitor: string
}

describe('devices that are alike', () => {
  let cluster: Cluster
  let receiver: WebhookReceiver

  beforeAll(async () => {
    receiver = await startWebhookReceiver()
    cluster = await startCluster({ env: { ...fastWebhooks, TRUSTED_PROXIES: '127.0.0.1,::1' } })
    await cluster.createEndpoint(receiver.url('/'), ['session.fingerprint.calculated'])
  }, 90_000)
  afterAll(async () => {
    await cluster?.stop()
    await receiver?.close()
  })

  const organization = (path = '') => `/v1/organizations/${cluster.owner.organizationId}${path}`
  const seenAs = (visit: Visit) => visitorOf(cluster, visit)

  async function visit(
    device: number,
    { of, address = home }: { of?: Visit; address?: string } = {},
  ): Promise<Seen> {
    const done = await visitAs(cluster, device, { address, continuity: of?.continuity })
    return { ...done, visitor: await seenAs(done) }
  }

  const told = ({ sessionId }: Visit) =>
    receiver.requests
      .map(({ body }) => JSON.parse(body))
      .filter(({ data }) => data.session.id === sessionId)
      .map(({ id, data }) => ({ id, visitor: data.visitor_fingerprint.id }))

  const isToldOf = (visit: Visit, visitors: string[]) =>
    eventually(() => expect(told(visit).map(({ visitor }) => visitor)).toEqual(visitors))

  const seenCountIs = async (visitor: string, seen_count: number) =>
    expect(await cluster.read(`/v1/fingerprints/${visitor}`)).toMatchObject({
      lifecycle: { seen_count },
    })

  it('a private window beside an ordinary one is its own visitor at once', async () => {
    const first = await visit(1)
    const again = await visit(1, { of: first })
    const second = await visit(1)
    const back = await visit(1, { of: second })
    expect([again.visitor, back.visitor]).toEqual([first.visitor, second.visitor])
    expect(second.visitor).not.toBe(first.visitor)
    expect(await cluster.read(`/v1/sessions/${second.sessionId}`)).toMatchObject({
      visitor_fingerprint: {
        confidence: 50,
        resolution: { method: 'new', basis: 'probabilistic' },
      },
    })
  }, 60_000)

  it('whose storage comes back keeps its visitor, and who was taken for it gets another', async () => {
    const first = await visit(2)
    const undo = await longAgo(cluster.pool, [first.sessionId])
    const other = await visit(2)
    expect(other.visitor).toBe(first.visitor)
    expect((await visit(2, { of: first })).visitor).toBe(first.visitor)
    await eventually(async () => expect(await seenAs(other)).not.toBe(first.visitor))
    const back = await visit(2, { of: other })
    expect(back.visitor).toBe(await seenAs(other))
    await isToldOf(other, [first.visitor, back.visitor])
    expect(new Set(told(other).map(({ id }) => id)).size).toBe(2)
    for (const { visitor } of [first, back]) await seenCountIs(visitor, 2)
    await undo()
  }, 60_000)

  it('and in two networks within minutes are two at once', async () => {
    const here = await visit(3)
    const there = await visit(3, { address: abroad })
    expect(there.visitor).not.toBe(here.visitor)
  }, 60_000)

  const correct = (visitor: string, kind: 'splits' | 'merges', body: object) =>
    cluster.read(organization(`/visitors/${visitor}/${kind}`), {
      body: { reason: 'They called us.', ...body },
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
    await isToldOf(other, [first.visitor, visitor])
    expect([await seenAs(first), await seenAs(again)]).toEqual([first.visitor, first.visitor])
    // The last session says whose storage it is, and a look alone may be of either.
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
    for (const _ of [1, 2])
      for (const [device, of, address] of [
        [5, desk, home],
        [6, away, abroad],
      ] as const)
        expect((await visit(device, { of, address })).visitor).toBe(desk.visitor)
    await seenCountIs(desk.visitor, 6)
    expect((await cluster.ask(`/v1/fingerprints/${away.visitor}`)).status).toBe(404)
    expect(await cluster.read(organization('/audit-log'))).toContainEqual(
      expect.objectContaining({
        type: 'VisitorCorrected',
        subject_id: desk.visitor,
        actor: { type: 'key', id: cluster.owner.secret.id },
      }),
    )
    expect(await cluster.read(organization(`/visitors/${desk.visitor}/export`))).toMatchObject({
      corrections: [
        {
          kind: 'merge',
          visitor_id: desk.visitor,
          other_visitor_id: away.visitor,
          reason: 'They called us.',
          session_ids: [away.sessionId],
        },
      ],
      sessions: expect.arrayContaining([
        expect.objectContaining({
          id: away.sessionId,
          link: expect.objectContaining({ merged_at: expect.any(String) }),
        }),
      ]),
    })
  }, 60_000)

  it('whoever has kept the id of a merged visitor learns where it went, while that one is there', async () => {
    const [one, two, three] = [
      await visit(7),
      await visit(8, { address: abroad }),
      await visit(9, { address: '192.0.2.7' }),
    ]
    await correct(two.visitor, 'merges', { visitor_id: one.visitor })
    await correct(three.visitor, 'merges', { visitor_id: two.visitor })
    const hintFor = async (visitor: string, key = cluster.owner.secret.key) => {
      const { status, error } = await cluster.ask(`/v1/fingerprints/${visitor}`, { key })
      expect(status).toBe(404)
      return error?.details
    }
    for (const { visitor } of [one, two])
      expect(await hintFor(visitor)).toEqual({ merged_into: three.visitor })
    const scopes = ['fingerprints:read']
    const { revealed_key } = await cluster.read<{ revealed_key: string }>(
      organization('/api-keys'),
      { body: { name: 'Test', type: 'secret', environment: 'test', scopes } },
    )
    expect(await hintFor(one.visitor, revealed_key)).toBeUndefined()
    await cluster.read(organization(`/visitors/${three.visitor}`), { method: 'DELETE' })
    expect(await hintFor(one.visitor)).toBeUndefined()
  }, 60_000)

  describe('why a session is of its visitor', () => {
    let first: Seen
    let again: Seen
    beforeAll(async () => {
      first = await visit(10)
      const undo = await longAgo(cluster.pool, [first.sessionId])
      again = await visit(10)
      await undo()
      expect(again.visitor).toBe(first.visitor)
    })

    const identification = async (path: string) =>
      (await cluster.read<{ identification?: object }>(path)).identification

    it('is said in its detail, and in that of a visitor about the newest session', async () => {
      const [one = '', other = ''] = [first, again].map(
        ({ sessionId }) => `/v1/sessions/${sessionId}?include=identification`,
      )
      expect(await identification(one)).toMatchObject({ chosen: null })
      const expected = await identification(other)
      expect(expected).toMatchObject({
        session_id: again.sessionId,
        decided_by: 'look',
        next: { visitor_id: expect.not.stringContaining(first.visitor) },
        chosen: {
          visitor_id: first.visitor,
          same_network: true,
          components: { changed: [], unknown: [{ name: 'memory' }] },
        },
      })
      const ofVisitor = `/v1/fingerprints/${first.visitor}?include=identification`
      expect(await identification(ofVisitor)).toEqual(expected)
      expect(await identification(`/v1/sessions/${again.sessionId}`)).toBeUndefined()
    })

    it('is said by a command, without master keys', async () => {
      const settings = { DATABASE_URL: cluster.settings.DATABASE_URL ?? '' }
      const explain = (...args: string[]) => cli(['visitors', 'explain', ...args], settings)
      const { stdout } = await explain(again.sessionId)
      expect(stdout).toContain(`Visitor:    ${first.visitor}\nDecided by: device fingerprint\n`)
      expect(stdout).toMatch(/canvas +│ 1 of \d+ +│ agreed +│ changed /)
      const { data } = JSON.parse((await explain(again.sessionId, '--json')).stdout)
      const path = `/v1/sessions/${again.sessionId}?include=identification`
      expect(data).toEqual(await identification(path))
    }, 60_000)
  })

  it.each(rebuildable)(
    'a rebuild of %s repeats it',
    (name) => rebuildIsEqual(cluster.settings, name),
    60_000,
  )
})
