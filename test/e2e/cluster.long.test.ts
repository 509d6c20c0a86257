import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type ApiRequest,
  type Cluster,
  clusterLogs,
  type IssuedKey,
  startCluster,
} from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'

interface Asked extends ApiRequest {
  path: string
}

/** Changes take effect in other processes within this time. */
const cacheMs = 15_000
const racers = 64

describe.each(clusterLogs())('two servers on one database and one log, %s', (log) => {
  let cluster: Cluster
  let base = ''

  beforeAll(async () => {
    cluster = await startCluster({ log, processes: 2 })
    base = `/v1/organizations/${cluster.owner.organizationId}`
  }, 90_000)
  afterAll(() => cluster?.stop())

  async function outcomeOf(server: number, { path, ...asked }: Asked): Promise<string> {
    const { status, error } = await cluster.ask(path, { ...asked, server })
    return `${status} ${error?.code ?? 'ok'}`
  }

  /** Sends the request from many at once. One who waited in vain for a turn asks again. */
  async function race(request: Asked): Promise<Record<string, number>> {
    const counts: Record<string, number> = {}
    const racer = async (_: unknown, i: number) => {
      let outcome = ''
      for (let tries = 0; tries < 5 && !/^[24]/.test(outcome); tries++)
        outcome = await outcomeOf(i % 2, request)
      counts[outcome] = (counts[outcome] ?? 0) + 1
    }
    await Promise.all(Array.from({ length: racers }, racer))
    return counts
  }

  async function issue(slug: string, body: object): Promise<IssuedKey> {
    const args = Object.entries(body).flatMap(([name, value]) => [`--${name}`, String(value)])
    const create = ['keys', 'create', slug, ...args]
    const issued = await cluster.operate<{ id: string; revealed_key: string }>(...create)
    return { id: issued.id, key: issued.revealed_key }
  }

  it('64 racers for one slug make one organization', async () => {
    const slug = `race-${Date.now()}`
    const request = { path: '/v1/organizations', body: { name: 'Race', slug } }
    expect(await race(request)).toEqual({ '201 ok': 1, '409 request.conflict': racers - 1 })
    const all = await cluster.operate<{ slug: string }[]>('org', 'list')
    expect(all.filter((organization) => organization.slug === slug)).toHaveLength(1)
  })

  it('64 racers for one rotation make one replacement', async () => {
    const name = `Rotated ${Date.now()}`
    const { id } = await issue(cluster.owner.slug, { name })
    expect(await race({ method: 'POST', path: `${base}/api-keys/${id}/rotations` })).toEqual({
      '201 ok': 1,
      '409 request.conflict': racers - 1,
    })
    const list = ['keys', 'list', cluster.owner.slug]
    const all = await cluster.operate<{ name: string; status: string }[]>(...list)
    const mine = all.filter((one) => one.name === name).map(({ status }) => status)
    expect(mine.toSorted()).toEqual(['active', 'rotating'])
  })

  interface Change {
    request: Asked
    before: string
    change: () => Promise<unknown>
    after: string
  }

  /** Asks both processes until they answer `after`; each has the key cached as it was `before`. */
  async function takesHold(
    what: string,
    { request, before, change, after }: Change,
  ): Promise<void> {
    for (const server of [0, 1]) expect(await outcomeOf(server, request)).toBe(before)
    await change()
    const changedAt = performance.now()
    const took = await Promise.all(
      [0, 1].map((server) =>
        eventually(
          async () => {
            expect(await outcomeOf(server, request)).toBe(after)
            return performance.now() - changedAt
          },
          { timeoutMs: cacheMs },
        ),
      ),
    )
    console.log(
      `${log}: ${what} holds after ${took.map((ms) => `${ms.toFixed(0)} ms`).join(' and ')}`,
    )
    expect(Math.max(...took)).toBeLessThan(cacheMs)
  }

  const scoped = { name: 'Scoped', type: 'secret', scopes: 'sessions:list' }
  const listing = ({ key }: IssuedKey) => ({ path: '/v1/sessions?limit=1', key })
  const page = { name: 'Page', origins: 'https://old.example' }
  const opening = ({ key }: IssuedKey) => ({
    path: '/v2/collect/sessions',
    body: {},
    headers: { origin: 'https://old.example' },
    key,
  })

  it.each([
    ['a revocation', scoped, listing, '200 ok', { method: 'DELETE' }, '401 auth.invalid_api_key'],
    [
      'a change of scopes',
      scoped,
      listing,
      '200 ok',
      { method: 'PATCH', body: { scopes: ['fingerprints:list'] } },
      '403 auth.insufficient_scope',
    ],
    [
      'a change of origins',
      page,
      opening,
      '422 request.validation_failed',
      { method: 'PATCH', body: { allowed_origins: ['https://new.example'] } },
      '403 auth.origin_not_allowed',
    ],
  ])(
    '%s through one holds on both within 15 s',
    async (what, key, asking, before, asked, after) => {
      const issued = await issue(cluster.owner.slug, key)
      const change = () => cluster.read(`${base}/api-keys/${issued.id}`, asked)
      await takesHold(what, { request: asking(issued), before, change, after })
    },
  )

  it('a suspension by the operator holds on both within 15 s, and so does its end', async () => {
    const { slug, secret } = await cluster.organization()
    const request = listing(secret)
    await takesHold('a suspension', {
      request,
      before: '200 ok',
      change: () => cluster.operate('org', 'suspend', slug),
      after: '403 auth.organization_inactive',
    })
    await takesHold('the end of a suspension', {
      request,
      before: '403 auth.organization_inactive',
      change: () => cluster.operate('org', 'reactivate', slug),
      after: '200 ok',
    })
  })
})
