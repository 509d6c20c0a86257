import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAuth } from '../../../infra/access/auth.ts'
import { createApp } from '../../../infra/http/app.ts'
import { type CommandAnswer, createIdempotency } from '../../../infra/idempotency/idempotency.ts'
import { leaseMs } from '../../../infra/idempotency/store.ts'
import { findKeyByLookupHash } from '../../../projections/organizations/queries.ts'
import { organizationRoutes } from '../../../services/organizations/routes.ts'
import { type Organizations, startOrganizations } from '../../services/organizations/support.ts'

let world: Organizations
let dying: FastifyInstance
/** What the dying process would have answered. */
let lost: CommandAnswer[] = []

beforeAll(async () => {
  world = await startOrganizations()
  dying = await startDying(world)
})
afterAll(async () => {
  await dying.close()
  await world.stop()
})

/** A process that is gone after each command's effect, before its answer is stored or sent. */
async function startDying({ deps, pool }: Organizations): Promise<FastifyInstance> {
  const app = await createApp({ ...deps, publicUrl: 'https://tidegate.example' })
  const auth = createAuth({ ...deps, findKey: (hashes) => findKeyByLookupHash(pool, hashes) })
  const whole = createIdempotency(deps)
  organizationRoutes(app, {
    ...deps,
    auth,
    idempotency: {
      ...whole,
      run: (options, work) =>
        whole.run(options, async (command) => {
          lost.push(await work(command))
          return new Promise<never>(() => {})
        }),
    },
  })
  return app
}

interface Repeated {
  url: string
  key: string
  body?: object
}

/** Sends to the dying process, and once nobody holds the command any more, to one that lives; twice. */
async function repeated({ url, key, body }: Repeated) {
  lost = []
  const idempotency = { 'idempotency-key': randomBytes(8).toString('hex') }
  const headers = { authorization: `Bearer ${key}`, ...idempotency }
  void dying.inject({ method: 'POST', url, headers, ...(body && { payload: body }) })
  await expect.poll(() => lost).toHaveLength(1)
  const send = () => world.send({ method: 'POST', url, key, body, headers: idempotency })
  const early = await send()
  expect([early.status, early.headers['retry-after']]).toEqual([409, '1'])
  world.now.ms += leaseMs
  const [first, second] = [await send(), await send()]
  expect([first.status, first.headers['idempotent-replayed']]).toEqual([201, undefined])
  expect([second.status, second.headers['idempotent-replayed']]).toEqual([201, 'true'])
  expect(second.body).toEqual(first.body)
  const { data } = JSON.parse(JSON.stringify(lost[0]?.body))
  expect(first.body.data).toEqual(data)
  return first.body.data
}

async function keysOf({ path, key }: { path: string; key: string }) {
  const { body } = await world.send({ url: `${path}/api-keys`, key })
  const keys: { id: string; name: string; status: string }[] = body.data
  return keys
}

test('a new key whose answer was lost is shown by the repetition: the same key, and only one', async () => {
  const own = await world.organization()
  const body = { name: 'Once', type: 'secret', scopes: ['organizations:read'] }
  const made = await repeated({ url: `${own.path}/api-keys`, key: own.key, body })
  const keys = await keysOf(own)
  expect(keys.filter(({ name }) => name === 'Once').map(({ id }) => id)).toEqual([made.id])
  const used = await world.send({ url: own.path, key: made.revealed_key })
  expect(used.status).toBe(200)
})

test('an organization whose creation was lost is not a conflict with itself', async () => {
  const own = await world.organization()
  const slug = `lost-${randomBytes(4).toString('hex')}`
  const made = await repeated({
    url: '/v1/organizations',
    key: own.key,
    body: { name: 'Lost', slug },
  })
  expect(made).toMatchObject({ slug, status: 'active' })
  const { rows } = await world.pool.query(
    'select organization_id as id from read.organizations where slug = $1',
    [slug],
  )
  expect(rows).toEqual([{ id: made.id }])
})
