import type { World } from '../world.ts'
import { withBodies, withoutBody } from './many.ts'

const name = 'Acme'

/** Organizations: made, read, renamed, suspended, deleted. */
export async function organizations(world: World): Promise<void> {
  const { record, live, test, own } = world
  const create = { method: 'POST', path: '/v1/organizations', headers: live }
  await withoutBody(world, { name: 'create organization', ...create })
  await withBodies(
    world,
    { name: 'create organization', ...create },
    {
      'nothing in it': {},
      'no name': { slug: 'acme' },
      'no slug': { name },
      'empty name': { name: '', slug: 'acme' },
      'blank name': { name: '   ', slug: 'acme' },
      'long name': { name: 'x'.repeat(121), slug: 'acme' },
      'name of another type': { name: 7, slug: 'acme' },
      'name with a control character': { name: 'a\u0000b', slug: 'acme' },
      'empty slug': { name, slug: '' },
      'slug in upper case': { name, slug: 'Acme' },
      'long slug': { name, slug: 'x'.repeat(64) },
      'unknown member': { name, slug: 'acme', plan: 'gold' },
      'all is well': { name: '  Acme Ünïcode ', slug: 'acme' },
      'slug that is taken': { name, slug: 'acme' },
    },
  )
  await idempotency(world)
  await record({ name: 'own organization', method: 'GET', path: own, headers: live })
  await record({ name: 'own organization by a test key', method: 'GET', path: own, headers: test })
  await record({
    name: 'organization with a query',
    method: 'GET',
    path: `${own}?verbose=1`,
    headers: live,
  })
  const update = { method: 'PATCH', path: own, headers: live }
  await withoutBody(world, { name: 'update organization', ...update })
  await withBodies(
    world,
    { name: 'update organization', ...update },
    {
      'nothing in it': {},
      'empty name': { name: '' },
      'long name': { name: 'x'.repeat(121) },
      'unknown status': { status: 'paused' },
      slug: { slug: 'other' },
      'another name': { name: 'Renamed' },
      'the same name': { name: 'Renamed' },
      'the same status': { status: 'active' },
    },
  )
  await agentDirectories(world)
  await endings(world)
}

async function agentDirectories(world: World): Promise<void> {
  const { record, live, own } = world
  const path = `${own}/agent-directories`
  const add = { name: 'add agent directory', method: 'POST', path, headers: live }
  await withBodies(world, add, {
    'nothing in it': {},
    'no domain': { domain: 'https://agent.example/' },
    'all is well': { domain: 'Agent.example', name: 'Acme' },
  })
  await record({ name: 'agent directories', method: 'GET', path, headers: live })
  for (const times of ['once', 'twice'])
    await record({
      name: `remove agent directory, ${times}`,
      method: 'DELETE',
      path: `${path}/agent.example`,
      headers: live,
    })
}

async function idempotency({ record, live, test }: World): Promise<void> {
  const send = (what: string, key: string, body: object, headers = live) =>
    record({
      name: `idempotent: ${what}`,
      method: 'POST',
      path: '/v1/organizations',
      headers: { ...headers, 'idempotency-key': key },
      body,
    })
  await send('first', 'once', { name, slug: 'idempotent' })
  await send('again', 'once', { name, slug: 'idempotent' })
  await send('members in another order', 'once', { slug: 'idempotent', name })
  await send('another body', 'once', { name: 'Other', slug: 'idempotent' })
  await send('of the other environment', 'once', { name, slug: 'idempotent' }, test)
  await send('empty key', '', { name, slug: 'idempotent-2' })
  await send('long key', 'x'.repeat(256), { name, slug: 'idempotent-2' })
  await send('key with an umlaut', 'schlüssel', { name, slug: 'idempotent-2' })
  await send('refused', 'twice', { name: '', slug: 'idempotent-2' })
  await send('refused, then right', 'twice', { name, slug: 'idempotent-2' })
}

async function endings({ record, organizations: { suspended, deleted } }: World): Promise<void> {
  for (const [status, { id, secret: headers }] of Object.entries({ suspended, deleted })) {
    const request = { path: `/v1/organizations/${id}`, headers }
    await record({
      name: `organization is ${status}`,
      method: 'PATCH',
      ...request,
      body: { status },
    })
    await record({ name: `organization was ${status}`, method: 'GET', ...request })
    await record({
      name: `${status}, then active`,
      method: 'PATCH',
      ...request,
      body: { status: 'active' },
    })
  }
}
