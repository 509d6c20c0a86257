import { afterAll, expect, it } from 'vitest'
import { followTrustedDirectories } from '../../../services/scoring/identity/trusted-directories.ts'
import { type ApiOrganization, startApi } from '../../support/api.ts'
import { eventually } from '../../support/eventually.ts'

const api = await startApi({ roles: ['api'] })
afterAll(() => api.stop())

const pathOf = ({ path }: ApiOrganization) => `${path}/agent-directories`
const list = async (owner: ApiOrganization) =>
  (await api.send({ url: pathOf(owner), key: owner.key })).body.data
const add = (owner: ApiOrganization, body: object) =>
  api.send({ method: 'POST', url: pathOf(owner), key: owner.key, body })
const remove = (owner: ApiOrganization, domain: string) =>
  api.send({
    method: 'DELETE',
    url: `${pathOf(owner)}/${encodeURIComponent(domain)}`,
    key: owner.key,
  })

it('a directory is added, listed, renamed and removed', async () => {
  const owner = await api.organization()
  expect(await list(owner)).toEqual([])
  const added = await add(owner, { domain: 'Agent.example', name: 'Acme' })
  const directory = { domain: 'agent.example', name: 'Acme' }
  expect([added.status, added.body.data]).toMatchObject([201, directory])
  await add(owner, { domain: 'agent.example:8443' })
  expect(await list(owner)).toMatchObject([directory, { domain: 'agent.example:8443', name: null }])
  const renamed = await add(owner, { domain: 'agent.example', name: 'Other' })
  expect(renamed.body.data.name).toBe('Other')
  const removed = await remove(owner, 'agent.example:8443')
  const left = [{ domain: 'agent.example', name: 'Other' }]
  expect([removed.status, removed.body.data]).toMatchObject([200, left])
  expect((await remove(owner, 'agent.example:8443')).status).toBe(404)
  expect(await list(owner)).toMatchObject(left)
})

it('names every invalid member', async () => {
  const { status, body } = await add(await api.organization(), {
    domain: '203.0.113.9',
    name: '',
    more: 1,
  })
  expect([status, body.error.details.parameter_set]).toEqual([422, 'agent_directory_add'])
  const names = body.error.details.fields.map(({ name }: { name: string }) => name)
  expect(names.toSorted()).toEqual(['domain', 'more', 'name'])
})

it('appends an event for each change, and none if nothing changes', async () => {
  const owner = await api.organization()
  const act = async () => {
    await add(owner, { domain: 'agent.example' })
    await add(owner, { domain: 'agent.example' })
    await remove(owner, 'agent.example')
  }
  const events = [{ type: 'AgentDirectoryAdded' }, { type: 'AgentDirectoryRemoved' }]
  await api.given().when(act).thenExpect({ events })
})

it('belongs to one organization, whose scoring applies it at once', async () => {
  const owner = await api.organization()
  const other = await api.organization()
  const { findTrusted, stop } = await followTrustedDirectories(api.core)
  const found = () =>
    [owner, other].map(({ organizationId }) => findTrusted(organizationId, 'agent.example'))
  expect(found()).toEqual([null, null])
  await add(owner, { domain: 'agent.example', name: 'Acme' })
  await eventually(() => expect(found()).toEqual([{ name: 'Acme' }, null]))
  expect(await list(other)).toEqual([])
  await remove(owner, 'agent.example')
  await eventually(() => expect(found()).toEqual([null, null]))
  await stop()
})
