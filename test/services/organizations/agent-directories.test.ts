import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { followTrusted } from '../../../services/scoring/identity/trusted.ts'
import { eventually } from '../../support/eventually.ts'
import { type Organizations, startOrganizations } from './support.ts'

let world: Organizations
const stops: (() => Promise<void>)[] = []

beforeAll(async () => {
  world = await startOrganizations()
})
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})
afterAll(() => world.stop())

type Owner = Awaited<ReturnType<Organizations['organization']>>

const pathOf = ({ path }: Owner) => `${path}/agent-directories`
const list = async (owner: Owner) =>
  (await world.send({ url: pathOf(owner), key: owner.key })).body.data
const add = (owner: Owner, body: object, headers: Record<string, string> = {}) =>
  world.send({ method: 'POST', url: pathOf(owner), key: owner.key, body, headers })
const remove = (owner: Owner, domain: string) =>
  world.send({
    method: 'DELETE',
    url: `${pathOf(owner)}/${encodeURIComponent(domain)}`,
    key: owner.key,
  })

it('is added, shown, renamed and removed', async () => {
  const owner = await world.organization()
  expect(await list(owner)).toEqual([])
  const added = await add(owner, { domain: 'Agent.example', name: 'Acme' })
  const directory = { object: 'agent_directory', domain: 'agent.example', name: 'Acme' }
  const added_at = new Date(world.now.ms).toISOString()
  expect([added.status, added.body.data]).toEqual([201, { ...directory, added_at }])
  await add(owner, { domain: 'agent.example:8443' })
  expect(await list(owner)).toMatchObject([directory, { domain: 'agent.example:8443', name: null }])
  const renamed = await add(owner, { domain: 'agent.example', name: 'Other' })
  expect([renamed.status, renamed.body.data.name]).toEqual([201, 'Other'])
  const removed = await remove(owner, 'agent.example:8443')
  expect([removed.status, removed.body.data]).toMatchObject([
    200,
    [{ domain: 'agent.example', name: 'Other' }],
  ])
  expect((await remove(owner, 'agent.example:8443')).status).toBe(404)
  expect(await list(owner)).toHaveLength(1)
})

it('names every member that does not fit', async () => {
  const owner = await world.organization()
  const { status, body } = await add(owner, { domain: '203.0.113.9', name: '', more: 1 })
  expect([status, body.error.details.parameter_set]).toEqual([422, 'agent_directory_add'])
  expect(body.error.details.fields.map(({ name }: { name: string }) => name).sort()).toEqual([
    'domain',
    'more',
    'name',
  ])
  expect((await add(owner, { name: 'Acme' })).body.error.details.fields).toMatchObject([
    { name: 'domain' },
  ])
})

it('makes an event for each change, and none where nothing changes', async () => {
  const owner = await world.organization()
  await add(owner, { domain: 'agent.example' })
  await add(owner, { domain: 'agent.example' })
  await remove(owner, 'agent.example')
  const counts = (['AgentDirectoryAdded', 'AgentDirectoryRemoved'] as const).map((type) =>
    world.count(type, owner.organizationId),
  )
  expect(await Promise.all(counts)).toEqual([1, 1])
})

it('is of one organization alone, whose scoring follows it at once', async () => {
  const owner = await world.organization()
  const other = await world.organization()
  const { applied, base } = world
  const { findTrusted, stop } = await followTrusted({
    pool: base.pool,
    applied,
    logger: base.logger,
  })
  stops.push(stop)
  const found = () =>
    [owner, other].map(({ organizationId }) => findTrusted(organizationId, 'agent.example'))
  expect(found()).toEqual([null, null])
  await add(owner, { domain: 'agent.example', name: 'Acme' })
  await eventually(() => expect(found()).toEqual([{ name: 'Acme' }, null]))
  expect(await list(other)).toEqual([])
  await remove(owner, 'agent.example')
  await eventually(() => expect(found()).toEqual([null, null]))
})
