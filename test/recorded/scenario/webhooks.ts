import { json } from '../http.ts'
import type { World } from '../world.ts'

const name = 'Endpoint'
const types = ['session.result.persisted']
const url = 'https://shop.example/hooks'

export interface Endpoints {
  /** Takes everything; of the live environment. */
  accepting: string
  refusing: string
}

/** Webhook endpoints: made, listed, changed, rotated, tested, disabled. */
export async function webhooks(world: World): Promise<Endpoints> {
  const { record, recordMalformed, read, own, live, test, receiver } = world
  const path = `${own}/webhooks/endpoints`
  const create = `POST ${path}`
  await recordMalformed('create endpoint', create, () => live)
  await refusedEndpoints(world)
  const once = { ...live, 'idempotency-key': 'endpoint' }
  const event_types = ['session.result.persisted', 'session.result.persisted']
  const taking = { name: ' Accepts ', url: receiver.url('/accept'), event_types }
  const { id: accepting } = await read('create endpoint', create, once, taking)
  await record('create endpoint, repeated', create, once, taking)
  // Each type goes to one endpoint: the deliveries of an event are in no order that could be compared.
  const { id: refusing } = await read('create refusing endpoint', create, live, {
    name: 'Refuses',
    url: receiver.url('/refuse'),
    event_types: ['session.fingerprint.calculated'],
  })
  await record('create test endpoint', create, test, {
    name,
    url: 'https://EXAMPLE.com/a%20path?q=ü',
    event_types: ['gate.session.approved'],
  })
  await record('list endpoints', `GET ${path}`, live)
  await record('list test endpoints', `GET ${path}`, test)
  await record('list endpoints with an offset', `GET ${path}?offset=1`, live)
  await record('list endpoints with a limit', `GET ${path}?limit=1`, live)
  await changedEndpoints(world, path)
  await tests(world, { path, accepting, refusing })
  return { accepting, refusing }
}

async function refusedEndpoints({ recordEach, own, live }: World): Promise<void> {
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
  await recordEach('create endpoint', `POST ${own}/webhooks/endpoints`, live, {
    ...Object.fromEntries(bodies),
    'nothing in it': {},
    'empty name': { name: '', url, event_types: types },
    'long name': { name: 'x'.repeat(101), url, event_types: types },
    'no type': { name, url, event_types: [] },
    'unknown type': { name, url, event_types: ['session.result.persisted', 'session.deleted'] },
    'type that only tests have': { name, url, event_types: ['webhook.test'] },
    'types of another type': { name, url, event_types: 'session.result.persisted' },
    'unknown member': { name, url, event_types: types, secret: 'x' },
  })
}

const unknownIds = { unknown: `we_${'0'.repeat(32)}`, malformed: 'nonsense' }

async function changedEndpoints(world: World, path: string): Promise<void> {
  const { record, recordEach, recordMalformed, read, live, test } = world
  const body = { name, url, event_types: types }
  const { id } = await read('create endpoint to change', `POST ${path}`, live, body)
  const one = `${path}/${id}`
  await recordMalformed('update endpoint', `PATCH ${one}`, () => live)
  await recordEach('update endpoint', `PATCH ${one}`, live, {
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
  })
  await record('update endpoint by a test key', `PATCH ${one}`, test, { name })
  const rotate = `POST ${one}/rotations`
  await record('rotate secret with a body', rotate, live, { secret: 'x' })
  for (const what of ['once', 'twice', 'three times'])
    await record(`rotate secret ${what}`, rotate, live)
  await record('disable with a body', `DELETE ${one}`, live, { now: true })
  await record('disable', `DELETE ${one}`, live)
  await record('disable again', `DELETE ${one}`, live)
  await record('rotate secret of a disabled one', rotate, live)
  await record('test a disabled one', `POST ${one}/test`, live)
  for (const [what, other] of Object.entries(unknownIds)) {
    await record(`update ${what} endpoint`, `PATCH ${path}/${other}`, live, { name })
    await record(`disable ${what} endpoint`, `DELETE ${path}/${other}`, live)
    await record(`rotate secret of ${what} endpoint`, `POST ${path}/${other}/rotations`, live)
    await record(`test ${what} endpoint`, `POST ${path}/${other}/test`, live)
  }
}

async function tests(
  world: World,
  { path, accepting, refusing }: Endpoints & { path: string },
): Promise<void> {
  const { record, read, until, own, live, test, receiver } = world
  const testOf = (id: string) => `POST ${path}/${id}/test`
  await record('test with a body', testOf(accepting), live, { loud: true })
  const once = { ...live, 'idempotency-key': 'test' }
  // Their answers say what became of them so far: nothing has.
  const letGo = receiver.hold()
  const events = [
    await read('test that is accepted', testOf(accepting), once),
    await read('test that is refused', testOf(refusing), live),
  ]
  await record('test, repeated', testOf(accepting), once)
  letGo()
  for (const [i, { event_id: id }] of events.entries()) {
    const get = `GET ${own}/events/${id}`
    const hasEnded = /"status":"(?:succeeded|failed)"/
    await until(get, live, ({ body }) => hasEnded.test(body.toString('utf8')))
    await record(`event of test ${i}`, get, live)
    await record(`event of test ${i} by a test key`, get, test)
  }
  await listedEvents(world, accepting)
  await deliveries(world, { path, accepting, refusing })
}

async function deliveries(
  world: World,
  { path, accepting, refusing }: Endpoints & { path: string },
): Promise<void> {
  const { record, recordEach, recordMalformed, until, own, live, test, receiver } = world
  const all = `${own}/webhooks/deliveries`
  const list = (what: string, query: string, headers = live) =>
    record(`list deliveries: ${what}`, `GET ${all}${query}`, headers)
  await list('of an endpoint', `?endpoint_id=${accepting}`)
  await list('of the other environment', `?endpoint_id=${accepting}`, test)
  await list('unknown status', '?status=lost')
  await list('malformed session', '?session_id=sid_1')
  const failed = await until(`GET ${all}?endpoint_id=${refusing}`, live, () => true)
  const [{ id } = { id: '' }] = json<{ id: string }[]>(failed).data
  const one = `${all}/${id}`
  await record('attempts', `GET ${one}/attempts`, live)
  await record('attempts by a test key', `GET ${one}/attempts`, test)
  const letGo = receiver.hold()
  await record('retry a delivery', `POST ${one}/retry`, live)
  await record('retry a delivery by a test key', `POST ${one}/retry`, test)
  await record('retry with a body', `POST ${one}/retry`, live, { now: true })
  letGo()
  const hasFailed = /"status":"failed"/
  await until(`GET ${all}?endpoint_id=${refusing}`, live, ({ body }) =>
    hasFailed.test(body.toString('utf8')),
  )
  const resend = `POST ${path}/${accepting}/resend`
  const since = '2026-01-01T00:00:00Z'
  await recordMalformed('resend', resend, () => live)
  await recordEach('resend', resend, live, {
    'nothing in it': {},
    'what failed': { since },
    'no time': { since: 'yesterday' },
    'unknown status': { since, status: 'lost' },
  })
  await record('resend by a test key', resend, test, { since })
}

async function listedEvents({ record, own, live, test }: World, endpointId: string): Promise<void> {
  const list = (what: string, query: string, headers = live) =>
    record(`list events: ${what}`, `GET ${own}/events${query}`, headers)
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
  await record('unknown event', `GET ${own}/events/evt_${'0'.repeat(26)}`, live)
  await record('malformed event', `GET ${own}/events/nonsense`, live)
}

/** The newest event of a type, once each of the sessions has its event and all deliveries have ended. */
export async function newestEvent(
  { until, own, live }: World,
  type: string,
  sessions: string[],
): Promise<string> {
  const ended = await until(`GET ${own}/events?type=${type}&limit=200`, live, (answer) => {
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
