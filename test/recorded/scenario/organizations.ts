import type { World } from '../world.ts'

const name = 'Acme'

/** Organizations: made, read, renamed, suspended, deleted. */
export async function organizations(world: World): Promise<void> {
  const { record, recordEach, recordMalformed, live, test, own } = world
  const create = 'POST /v1/organizations'
  await recordMalformed('create organization', create, () => live)
  await recordEach('create organization', create, live, {
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
  })
  await idempotency(world)
  await record('own organization', `GET ${own}`, live)
  await record('own organization by a test key', `GET ${own}`, test)
  await record('organization with a query', `GET ${own}?verbose=1`, live)
  await recordMalformed('update organization', `PATCH ${own}`, () => live)
  await recordEach('update organization', `PATCH ${own}`, live, {
    'nothing in it': {},
    'empty name': { name: '' },
    'long name': { name: 'x'.repeat(121) },
    'unknown status': { status: 'paused' },
    slug: { slug: 'other' },
    'another name': { name: 'Renamed' },
    'the same name': { name: 'Renamed' },
    'the same status': { status: 'active' },
  })
  await agentDirectories(world)
  await endings(world)
}

async function agentDirectories({ record, recordEach, live, own }: World): Promise<void> {
  const path = `${own}/agent-directories`
  await recordEach('add agent directory', `POST ${path}`, live, {
    'nothing in it': {},
    'no domain': { domain: 'https://agent.example/' },
    'all is well': { domain: 'Agent.example', name: 'Acme' },
  })
  await record('agent directories', `GET ${path}`, live)
  for (const times of ['once', 'twice'])
    await record(`remove agent directory, ${times}`, `DELETE ${path}/agent.example`, live)
}

async function idempotency({ record, live, test }: World): Promise<void> {
  const send = (what: string, key: string, body: object, by = live) => {
    const headers = { ...by, 'idempotency-key': key }
    return record(`idempotent: ${what}`, 'POST /v1/organizations', headers, body)
  }
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
  for (const [status, { id, secret }] of Object.entries({ suspended, deleted })) {
    const path = `/v1/organizations/${id}`
    await record(`organization is ${status}`, `PATCH ${path}`, secret, { status })
    await record(`organization was ${status}`, `GET ${path}`, secret)
    await record(`${status}, then active`, `PATCH ${path}`, secret, { status: 'active' })
  }
}
