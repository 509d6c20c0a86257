import { json } from '../http.ts'
import type { World } from '../world.ts'
import { withBodies, withoutBody } from './many.ts'

const name = 'Endpoint'
const types = ['session.result.persisted']

export interface Endpoints {
  /** Takes everything; of the live environment. */
  accepting: string
  refusing: string
}

/** Webhook endpoints: made, listed, changed, rotated, tested, disabled. */
export async function webhooks(world: World): Promise<Endpoints> {
  const { record, read, own, live, test, receiver } = world
  const path = `${own}/webhooks/endpoints`
  const create = { method: 'POST', path, headers: live }
  await withoutBody(world, { name: 'create endpoint', ...create })
  await refusedEndpoints(world)
  const event_types = ['session.result.persisted', 'session.result.persisted']
  const accepting = await read({
    name: 'create endpoint',
    ...create,
    headers: { ...live, 'idempotency-key': 'endpoint' },
    body: { name: ' Accepts ', url: receiver.url('/accept'), event_types },
  })
  await record({
    name: 'create endpoint, repeated',
    ...create,
    headers: { ...live, 'idempotency-key': 'endpoint' },
    body: { name: ' Accepts ', url: receiver.url('/accept'), event_types },
  })
  const refusing = await read({
    name: 'create refusing endpoint',
    ...create,
    // Each type goes to one endpoint: the deliveries of an event are in no order that could be compared.
    body: {
      name: 'Refuses',
      url: receiver.url('/refuse'),
      event_types: ['session.fingerprint.calculated'],
    },
  })
  await record({
    name: 'create test endpoint',
    ...create,
    headers: test,
    body: {
      name,
      url: 'https://EXAMPLE.com/a path?q=ü'.replace(' ', '%20'),
      event_types: ['gate.session.approved'],
    },
  })
  await record({ name: 'list endpoints', method: 'GET', path, headers: live })
  await record({ name: 'list test endpoints', method: 'GET', path, headers: test })
  await record({
    name: 'list endpoints with an offset',
    method: 'GET',
    path: `${path}?offset=1`,
    headers: live,
  })
  await record({
    name: 'list endpoints with a limit',
    method: 'GET',
    path: `${path}?limit=1`,
    headers: live,
  })
  await changedEndpoints(world, path)
  await tests(world, { path, accepting: accepting.id, refusing: refusing.id })
  return { accepting: accepting.id, refusing: refusing.id }
}

async function refusedEndpoints(world: World): Promise<void> {
  const create = { method: 'POST', path: `${world.own}/webhooks/endpoints`, headers: world.live }
  const url = 'https://shop.example/hooks'
  const urls = {
    'no URL': 'shop.example',
    'of ftp': 'ftp://shop.example/',
    'with a user': 'https://user:secret@shop.example/',
    'with a fragment': 'https://shop.example/#a',
    'with a space': 'https://shop.example/a b',
    'of a low port': 'https://shop.example:25/',
    'of a private address': 'https://10.0.0.1/',
    'of a public address': 'https://62.1.0.1/',
    'of an empty label': 'https://shop..example/',
    'that is long': `https://shop.example/${'x'.repeat(2000)}`,
    'that is empty': '',
  }
  const bodies = Object.entries(urls).map(([what, value]) => [
    `URL ${what}`,
    { name, url: value, event_types: types },
  ])
  await withBodies(
    world,
    { name: 'create endpoint', ...create },
    {
      ...Object.fromEntries(bodies),
      'nothing in it': {},
      'empty name': { name: '', url, event_types: types },
      'long name': { name: 'x'.repeat(101), url, event_types: types },
      'no type': { name, url, event_types: [] },
      'unknown type': { name, url, event_types: ['session.result.persisted', 'session.deleted'] },
      'type that only tests have': { name, url, event_types: ['webhook.test'] },
      'types of another type': { name, url, event_types: 'session.result.persisted' },
      'unknown member': { name, url, event_types: types, secret: 'x' },
    },
  )
}

async function changedEndpoints(world: World, path: string): Promise<void> {
  const { record, read, live, test } = world
  const body = { name, url: 'https://shop.example/hooks', event_types: types }
  const { id } = await read({
    name: 'create endpoint to change',
    method: 'POST',
    path,
    headers: live,
    body,
  })
  const one = { path: `${path}/${id}`, headers: live }
  const update = { method: 'PATCH', ...one }
  await withoutBody(world, { name: 'update endpoint', ...update })
  await withBodies(
    world,
    { name: 'update endpoint', ...update },
    {
      'nothing in it': {},
      'empty name': { name: '' },
      'another name': { name: 'Changed' },
      'another URL': { url: 'https://other.example/hooks' },
      'URL of http': { url: 'http://other.example/hooks' },
      'other types': { event_types: ['gate.session.approved', 'session.fingerprint.calculated'] },
      'no type': { event_types: [] },
      'unknown status': { status: 'paused' },
      disabled: { status: 'disabled' },
      'disabled again': { status: 'disabled' },
      active: { status: 'active' },
      'all at once': {
        name: 'Both',
        url: 'https://shop.example/',
        status: 'active',
        event_types: types,
      },
    },
  )
  await record({ name: 'update endpoint by a test key', ...update, headers: test, body: { name } })
  const rotate = { method: 'POST', ...one, path: `${one.path}/rotations` }
  await record({ name: 'rotate secret with a body', ...rotate, body: { secret: 'x' } })
  for (const what of ['once', 'twice', 'three times'])
    await record({ name: `rotate secret ${what}`, ...rotate })
  await record({ name: 'disable with a body', method: 'DELETE', ...one, body: { now: true } })
  await record({ name: 'disable', method: 'DELETE', ...one })
  await record({ name: 'disable again', method: 'DELETE', ...one })
  await record({ name: 'rotate secret of a disabled one', ...rotate })
  await record({ name: 'test a disabled one', ...rotate, path: `${one.path}/test` })
  for (const [what, other] of Object.entries({
    unknown: `we_${'0'.repeat(32)}`,
    malformed: 'nonsense',
  })) {
    const request = { path: `${path}/${other}`, headers: live }
    await record({ name: `update ${what} endpoint`, method: 'PATCH', ...request, body: { name } })
    await record({ name: `disable ${what} endpoint`, method: 'DELETE', ...request })
    await record({
      name: `rotate secret of ${what} endpoint`,
      method: 'POST',
      ...request,
      path: `${request.path}/rotations`,
    })
    await record({
      name: `test ${what} endpoint`,
      method: 'POST',
      ...request,
      path: `${request.path}/test`,
    })
  }
}

async function tests(
  world: World,
  { path, accepting, refusing }: Endpoints & { path: string },
): Promise<void> {
  const { record, read, until, own, live, test, receiver } = world
  const testOf = (id: string) => ({ method: 'POST', path: `${path}/${id}/test`, headers: live })
  await record({ name: 'test with a body', ...testOf(accepting), body: { loud: true } })
  const headers = { ...live, 'idempotency-key': 'test' }
  // Their answers say what became of them so far: nothing has.
  const letGo = receiver.hold()
  const events = [
    await read({ name: 'test that is accepted', ...testOf(accepting), headers }),
    await read({ name: 'test that is refused', ...testOf(refusing) }),
  ]
  await record({ name: 'test, repeated', ...testOf(accepting), headers })
  letGo()
  for (const [i, { event_id: id }] of events.entries()) {
    const get = { method: 'GET', path: `${own}/events/${id}`, headers: live }
    await until(get, ({ body }) => /"status":"(?:succeeded|failed)"/.test(body.toString('utf8')))
    await record({ name: `event of test ${i}`, ...get })
    await record({ name: `event of test ${i} by a test key`, ...get, headers: test })
  }
  await listedEvents(world, accepting)
}

async function listedEvents({ record, own, live, test }: World, endpointId: string): Promise<void> {
  const list = (what: string, query: string, headers = live) =>
    record({ name: `list events: ${what}`, method: 'GET', path: `${own}/events${query}`, headers })
  await list('all', '')
  await list('one', '?limit=1')
  await list('of a type', '?type=webhook.test')
  await list('of another type', '?type=gate.session.approved')
  await list('of an endpoint', `?endpoint_id=${endpointId}`)
  await list('of an unknown endpoint', `?endpoint_id=we_${'0'.repeat(32)}`)
  await list('of the other environment', '', test)
  await list('unknown type', '?type=session.deleted')
  await list('malformed endpoint', '?endpoint_id=we_1')
  await list('limit of 0', '?limit=0')
  await list('limit of 201', '?limit=201')
  await list('cursor', '?cursor=abc')
  await list('offset', '?offset=1')
  for (const [what, id] of Object.entries({
    unknown: `evt_${'0'.repeat(26)}`,
    malformed: 'nonsense',
  })) {
    await record({
      name: `${what} event`,
      method: 'GET',
      path: `${own}/events/${id}`,
      headers: live,
    })
  }
}

/** The newest event of a type, once each of the sessions has its event and all deliveries have ended. */
export async function newestEvent(
  { until, own, live }: World,
  type: string,
  sessions: string[],
): Promise<string> {
  const path = `${own}/events?type=${type}&limit=200`
  const ended = await until({ method: 'GET', path, headers: live }, (answer) => {
    const { data } = json<SessionEvent[]>(answer)
    const deliveries = data.flatMap((one) => one.webhook_deliveries)
    const subjects = new Set(data.map(({ subject }) => subject.id))
    return (
      sessions.every((id) => subjects.has(id)) &&
      // The list has an event before it is raised, from its session and without deliveries.
      data.every(
        (event) => !sessions.includes(event.subject.id) || event.webhook_deliveries.length > 0,
      ) &&
      deliveries.every(({ status }) => status === 'succeeded' || status === 'failed')
    )
  })
  return json<SessionEvent[]>(ended).data[0]?.id ?? ''
}

interface SessionEvent {
  id: string
  subject: { id: string }
  webhook_deliveries: { status: string }[]
}
