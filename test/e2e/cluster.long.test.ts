import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createModel } from '../infra/access/rate-limit/support/model.ts'
import { type Cluster, clusterLogs, type IssuedKey, startCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'

interface Send {
  method?: string
  path: string
  key: IssuedKey
  body?: unknown
  origin?: string
}

interface Answer {
  status: number
  code: string | undefined
  data: { id?: string; key_preview?: string }[] | { id?: string }
}

/** What changes on one process holds on the others after at most this long. */
const cacheMs = 15_000
const racers = 64

describe.each(clusterLogs())('two servers on one database and one log, %s', (log) => {
  let cluster: Cluster
  let base = ''

  beforeAll(async () => {
    cluster = await startCluster({ log })
    base = `/v1/organizations/${cluster.owner.organizationId}`
  }, 90_000)
  afterAll(() => cluster?.stop())

  async function send(
    process: number,
    { method = 'GET', path, key, body, origin }: Send,
  ): Promise<Answer> {
    const response = await cluster.fetch(process, path, {
      method,
      headers: {
        authorization: `Bearer ${key.key}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(origin !== undefined && { origin }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const { data, error }: { data: Answer['data']; error?: { code: string } } = JSON.parse(
      await response.text(),
    )
    return { status: response.status, code: error?.code, data }
  }

  /** One of many at once: who waited in vain for a turn, as on a slow machine, may ask again, and does. */
  async function raced(process: number, request: Send): Promise<Answer> {
    for (let tries = 1; ; tries++) {
      const answer = await send(process, request)
      if (answer.status !== 503 || tries === 5) return answer
    }
  }

  const owned = (request: Omit<Send, 'key'>) => ({ ...request, key: cluster.owner.secret })
  const outcome = ({ status, code }: Answer) => `${status} ${code ?? 'ok'}`

  function count(answers: Answer[]): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const answer of answers) counts[outcome(answer)] = (counts[outcome(answer)] ?? 0) + 1
    return counts
  }

  async function issue(body: object): Promise<IssuedKey> {
    const args = Object.entries(body).flatMap(([name, value]) => [`--${name}`, String(value)])
    const issued = await cluster.operate<{ id: string; revealed_key: string }>(
      'keys',
      'create',
      cluster.owner.slug,
      ...args,
    )
    return { id: issued.id, key: issued.revealed_key }
  }

  it('64 racers for one slug make one organization', async () => {
    const slug = `race-${Date.now()}`
    const request = owned({
      method: 'POST',
      path: '/v1/organizations',
      body: { name: 'Race', slug },
    })
    const answers = await Promise.all(
      Array.from({ length: racers }, (_, i) => raced(i % 2, request)),
    )
    expect(count(answers)).toEqual({ '201 ok': 1, '409 request.conflict': racers - 1 })
    const all = await cluster.operate<{ slug: string }[]>('org', 'list')
    expect(all.filter((organization) => organization.slug === slug)).toHaveLength(1)
  })

  it('64 racers for one rotation make one replacement', async () => {
    const name = `Rotated ${Date.now()}`
    const key = await issue({ name })
    const request = owned({ method: 'POST', path: `${base}/api-keys/${key.id}/rotations` })
    const answers = await Promise.all(
      Array.from({ length: racers }, (_, i) => raced(i % 2, request)),
    )
    expect(count(answers)).toEqual({ '201 ok': 1, '409 request.conflict': racers - 1 })
    const all = await cluster.operate<{ id: string; name: string; status: string }[]>(
      'keys',
      'list',
      cluster.owner.slug,
    )
    const mine = all.filter((one) => one.name === name).map(({ status }) => status)
    expect(mine.toSorted()).toEqual(['active', 'rotating'])
  })

  /** Asks both processes until they answer `after`; each has the key cached as it was `before`. */
  async function takesHold(
    what: string,
    {
      request,
      before,
      change,
      after,
    }: { request: Send; before: string; change: () => unknown; after: string },
  ): Promise<void> {
    for (const process of [0, 1]) expect(outcome(await send(process, request))).toBe(before)
    await change()
    const changedAt = performance.now()
    const took = await Promise.all(
      [0, 1].map((process) =>
        eventually(
          async () => {
            expect(outcome(await send(process, request))).toBe(after)
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
  const listing = (key: IssuedKey) => ({ path: '/v1/sessions?limit=1', key })

  it('a key revoked through one stops working on both within 15 s', async () => {
    const key = await issue(scoped)
    await takesHold('a revocation', {
      request: listing(key),
      before: '200 ok',
      change: async () => {
        const revoked = await send(
          0,
          owned({ method: 'DELETE', path: `${base}/api-keys/${key.id}` }),
        )
        expect(revoked.status).toBe(200)
      },
      after: '401 auth.invalid_api_key',
    })
  })

  it('a change of scopes through one holds on both within 15 s', async () => {
    const key = await issue(scoped)
    const body = { scopes: ['fingerprints:list'] }
    await takesHold('a change of scopes', {
      request: listing(key),
      before: '200 ok',
      change: async () => {
        const changed = await send(
          0,
          owned({ method: 'PATCH', path: `${base}/api-keys/${key.id}`, body }),
        )
        expect(changed.status).toBe(200)
      },
      after: '403 auth.insufficient_scope',
    })
  })

  it('a change of origins through one holds on both within 15 s', async () => {
    const key = await issue({ name: 'Page', origins: 'https://old.example' })
    const body = { allowed_origins: ['https://new.example'] }
    const opening = {
      method: 'POST',
      path: '/v2/collect/sessions',
      body: {},
      origin: 'https://old.example',
    }
    await takesHold('a change of origins', {
      request: { ...opening, key },
      before: '422 request.validation_failed',
      change: async () => {
        const changed = await send(
          0,
          owned({ method: 'PATCH', path: `${base}/api-keys/${key.id}`, body }),
        )
        expect(changed.status).toBe(200)
      },
      after: '403 auth.origin_not_allowed',
    })
  })

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

  // The limits are in Postgres whatever the log is.
  it('at 3 times the limit both together admit what one bucket would, and at most two twentieths more', async () => {
    const limit = 1200
    const seconds = 12
    const { slug, organizationId } = await cluster.organization()
    await cluster.operate('org', 'limits', slug, '--secret', String(limit))
    const issued = await cluster.operate<{ id: string; revealed_key: string }>(
      'keys',
      'create',
      slug,
      '--name',
      'Limited',
      '--type',
      'secret',
      '--scopes',
      'sessions:list',
    )
    // Without the scope for it: denied or not, nothing is read, and the units are taken before.
    const request = {
      path: `/v1/organizations/${organizationId}`,
      key: { id: issued.id, key: issued.revealed_key },
    }
    const start = performance.now()
    const offered = await Promise.all(
      Array.from({ length: 3 * limit }, async (_, i) => {
        await delay((i * seconds * 1000) / (3 * limit))
        const sent = performance.now() - start
        const { status } = await send(i % 10 < 7 ? 0 : 1, request)
        return { sent, answered: performance.now() - start, status }
      }),
    )
    const statuses = new Set(offered.map(({ status }) => status))
    expect(statuses).toEqual(new Set([403, 429]))
    const admitted = offered.filter(({ status }) => status === 403).length
    const bySending = modelAdmits(
      limit,
      offered.map(({ sent }) => sent),
    )
    const byAnswer = modelAdmits(
      limit,
      offered.map(({ answered }) => answered),
    )
    const [least, most] = [Math.min(bySending, byAnswer), Math.max(bySending, byAnswer)]
    const slowest = Math.max(...offered.map(({ sent, answered }) => answered - sent))
    console.log(
      `${log}: offered ${offered.length} in ${seconds} s over two servers, limit ${limit}: admitted ${admitted}, ` +
        `one bucket would admit ${least} to ${most}; slowest answer ${slowest.toFixed(0)} ms`,
    )
    expect(admitted).toBeGreaterThanOrEqual(least * 0.99)
    expect(admitted).toBeLessThanOrEqual(most * 1.01 + (2 * limit) / 20)
  }, 180_000)
})

/** How many of the requests, each of one unit, the bucket of the interface admits at these milliseconds. */
function modelAdmits(limit: number, times: number[]): number {
  const model = createModel(limit, 0)
  const inOrder = times.map(Math.round).toSorted((a, b) => a - b)
  return inOrder.filter((at) => model.request(1, limit, at).admitted).length
}
