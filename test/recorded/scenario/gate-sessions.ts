import {
  type DeliveryKeys,
  generateDeliveryKeys,
  openEnvelope,
} from '../../../infra/wire/delivery-envelope.ts'
import { changedToken, visit } from '../visit.ts'
import { bearer, type Headers, type World } from '../world.ts'
import type { Service } from './gate-services.ts'
import { withBodies, withoutBody } from './many.ts'

const sessions = '/v1/gate/sessions'
const logins = '/v1/gate/login-sessions'
const unknown = `gate_${'0'.repeat(26)}`

interface Opened {
  id: string
  pollToken: string
  keys: DeliveryKeys
}

/** Signups and logins from the request to the last acknowledgement. */
export async function gateSessions(world: World, service: Service): Promise<void> {
  await openings(world, service)
  await closings(world, service)
  const agentToken = await signup(world, service)
  await systemSignup(world)
  await login(world, service, agentToken)
  await tokens(world, agentToken)
  await unansweredApproval(world)
  await claimed(world, service)
}

function open(
  world: World,
  name: string,
  serviceId: string,
  headers: Headers = {},
): Promise<Opened> {
  const keys = generateDeliveryKeys()
  const body = {
    service_id: serviceId,
    account_name: 'Robin',
    metadata: { plan: 'free', seats: 2 },
    delivery: keys.delivery,
  }
  const address = { ...world.freshAddress(), 'user-agent': 'agent/1.0' }
  return world
    .read({ name, method: 'POST', path: sessions, headers: { ...address, ...headers }, body })
    .then(({ id, poll_token: pollToken }) => ({ id, pollToken, keys }))
}

async function openings(world: World, { id }: Service): Promise<void> {
  const { delivery } = generateDeliveryKeys()
  const good = { service_id: id, account_name: 'Robin', delivery }
  const changed = (changes: object) => ({ ...good, ...changes })
  const nested = { a: { b: { c: { d: { e: { f: { g: { h: { i: 1 } } } } } } } } }
  const bodies: Record<string, object> = {
    'nothing in it': {},
    'no service': changed({ service_id: undefined }),
    'malformed service': changed({ service_id: 'x' }),
    'unknown service': changed({ service_id: 'nobody' }),
    'disabled service': changed({ service_id: 'acme-plain' }),
    'no account': changed({ account_name: undefined }),
    'empty account': changed({ account_name: '' }),
    'account with outer spaces': changed({ account_name: ' Robin ' }),
    'long account': changed({ account_name: 'x'.repeat(500) }),
    'account of two lines': changed({ account_name: 'a\nb' }),
    'metadata of another type': changed({ metadata: [] }),
    'large metadata': changed({ metadata: { text: 'x'.repeat(100_000) } }),
    'nested metadata': changed({ metadata: nested }),
    'much metadata': changed({
      metadata: Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`k${i}`, i])),
    }),
    'no delivery': changed({ delivery: undefined }),
    'another version of delivery': changed({ delivery: { ...delivery, version: 2 } }),
    'another algorithm': changed({ delivery: { ...delivery, algorithm: 'rsa' } }),
    'key id of another key': changed({ delivery: { ...delivery, key_id: 'A'.repeat(43) } }),
    'key that is none': changed({ delivery: { ...delivery, public_key: 'abc' } }),
    'unknown member': changed({ price: 5 }),
  }
  const request = { name: 'sign up', method: 'POST', path: sessions }
  // Each from an address of its own: an address may open five a minute.
  for (const [what, body] of Object.entries(bodies)) {
    await withBodies(world, { ...request, headers: world.freshAddress() }, { [what]: body })
  }
  await withoutBody(world, { ...request, headers: world.freshAddress })
  const again = { ...world.freshAddress(), 'idempotency-key': 'signup' }
  await world.record({ ...request, name: 'sign up, once', headers: again, body: good })
  await world.record({ ...request, name: 'sign up, repeated', headers: again, body: good })
  await world.record({
    ...request,
    name: 'sign up, another body',
    headers: again,
    body: changed({ account_name: 'Sam' }),
  })
}

/** Sessions that nobody approves. */
async function closings(world: World, service: Service): Promise<void> {
  const { record, freshAddress } = world
  for (const id of [unknown, 'nonsense']) {
    const path = `${sessions}/${id}`
    const headers = { ...freshAddress(), ...bearer('gtpoll_00000000000000000000000000') }
    await record({ name: `poll ${id === unknown ? 'unknown' : id}`, method: 'GET', path, headers })
    await record({
      name: `consent ${id === unknown ? 'unknown' : id}`,
      method: 'GET',
      path: `${path}/consent`,
      headers,
    })
    await record({
      name: `approve ${id === unknown ? 'unknown' : id}`,
      method: 'POST',
      path: `${path}/approve`,
      headers,
      body: {},
    })
    await record({
      name: `cancel ${id === unknown ? 'unknown' : id}`,
      method: 'POST',
      path: `${path}/cancel`,
      headers,
    })
    const body = { ack_token: 'x' }
    await record({
      name: `ack ${id === unknown ? 'unknown' : id}`,
      method: 'POST',
      path: `${path}/ack`,
      headers,
      body,
    })
    await record({
      name: `page ${id === unknown ? 'unknown' : id}`,
      method: 'GET',
      path: `/gate/consent/${id}`,
    })
  }
  const { id, pollToken } = await open(world, 'sign up to decline', service.id)
  const other = await open(world, 'sign up of another', 'tidegate')
  const path = `${sessions}/${id}`
  const poll = { method: 'GET', path, headers: bearer(pollToken) }
  await record({ name: 'poll', ...poll })
  await record({ name: 'poll by another token', ...poll, headers: bearer(other.pollToken) })
  await record({ name: 'poll by a malformed token', ...poll, headers: bearer('gtpoll_x') })
  await record({ name: 'poll by a secret key', ...poll, headers: world.live })
  await record({ name: 'consent page', method: 'GET', path: `/gate/consent/${id}` })
  const consent = { method: 'GET', path: `${path}/consent`, headers: freshAddress() }
  await record({ name: 'consent', ...consent })
  await record({
    name: 'consent from its page',
    ...consent,
    headers: { ...freshAddress(), origin: world.baseUrl },
  })
  await record({
    name: 'consent from another page',
    ...consent,
    headers: { origin: 'https://evil.example' },
  })
  await record({
    name: 'consent from another site',
    ...consent,
    headers: { 'sec-fetch-site': 'cross-site' },
  })
  const ack = { method: 'POST', path: `${path}/ack`, headers: bearer(pollToken) }
  await record({
    name: 'ack of a pending one',
    ...ack,
    body: { ack_token: `gtack_${'0'.repeat(40)}` },
  })
  await refusedApprovals(world, path)
  const cancel = { method: 'POST', path: `${path}/cancel`, headers: freshAddress() }
  await record({
    name: 'cancel from another page',
    ...cancel,
    headers: { origin: 'https://evil.example' },
  })
  await record({ name: 'cancel with a body', ...cancel, body: { reason: 'x' } })
  await record({ name: 'cancel', ...cancel })
  await record({ name: 'cancel again', ...cancel })
  await record({ name: 'poll of a declined one', ...poll })
  await record({ name: 'consent of a declined one', ...consent })
  await record({
    name: 'approve a declined one',
    ...cancel,
    path: `${path}/approve`,
    headers: freshAddress(),
    body: {},
  })
  const closing = { ...cancel, path: `${sessions}/${other.id}/cancel?closing=1` }
  await record({ name: 'cancel by closing the page', ...closing })
}

async function refusedApprovals(world: World, path: string): Promise<void> {
  const approve_token = `gtapr_${'0'.repeat(40)}`
  const bodies: Record<string, object> = {
    'nothing in it': {},
    'unknown token': { approve_token, sealed_token: 'x' },
    'malformed token': { approve_token: 'x', sealed_token: 'x' },
    'long token': { approve_token: 'x'.repeat(201) },
    'no proof': { approve_token },
    'unknown member': { approve_token, sealed_token: 'x', name: 'x' },
  }
  for (const [what, body] of Object.entries(bodies)) {
    const request = {
      name: 'approve',
      method: 'POST',
      path: `${path}/approve`,
      headers: world.freshAddress(),
    }
    await withBodies(world, request, { [what]: body })
  }
  await withoutBody(world, {
    name: 'approve',
    method: 'POST',
    path: `${path}/approve`,
    headers: world.freshAddress,
  })
}

/** What the consent page posts when a person approves: its token, and what its own session was handed for that. */
async function approval(world: World, name: string, id: string, person: 'robin' | 'bot' = 'robin') {
  const page = await world.quiet({ method: 'GET', path: `/gate/consent/${id}` })
  const publishableKey = /\bpk_test_[0-9a-z]+/.exec(page.body.toString('utf8'))?.[0] ?? ''
  const pageUrl = `${world.baseUrl}/gate/consent/${id}`
  const visitor = await visit(world, { name, person, publishableKey, address: '62.1.9.9', pageUrl })
  const consent = {
    name: `${name}: consent`,
    method: 'GET',
    path: `${sessions}/${id}/consent`,
    headers: world.freshAddress(),
  }
  const { approve_token } = await world.read(consent)
  const { sealedToken, sessionId } = await visitor.finish(approve_token)
  return { approve_token, sealed_token: sealedToken, session_id: sessionId }
}

async function signup(world: World, service: Service): Promise<string> {
  const { record, read, freshAddress } = world
  const { id, pollToken, keys } = await open(world, 'sign up to approve', service.id)
  const path = `${sessions}/${id}`
  const bot = await approval(world, 'bot that approves', id, 'bot')
  await record({
    name: 'approve as a bot',
    method: 'POST',
    path: `${path}/approve`,
    headers: freshAddress(),
    body: bot,
  })
  const body = await approval(world, 'person who approves', id)
  const approve = { method: 'POST', path: `${path}/approve` }
  const send = (name: string, changes: object) =>
    record({ name, ...approve, headers: freshAddress(), body: { ...body, ...changes } })
  await send('approve with a changed proof', { sealed_token: changedToken(body.sealed_token) })
  await send('approve with the proof of another session', { session_id: `sid_${'0'.repeat(26)}` })
  await send('approve without a proof', { sealed_token: undefined })
  await record({
    name: 'approve from another page',
    ...approve,
    headers: { origin: 'https://evil.example' },
    body,
  })
  const headers = { ...freshAddress(), 'idempotency-key': 'approval' }
  await record({ name: 'approve', ...approve, headers, body })
  await record({ name: 'approve, repeated', ...approve, headers, body })
  await send('approve again', {})
  await record({
    name: 'cancel an approved one',
    method: 'POST',
    path: `${path}/cancel`,
    headers: freshAddress(),
  })
  const poll = { method: 'GET', path, headers: bearer(pollToken) }
  const { delivery_bundle: bundle } = await read({ name: 'poll an approved one', ...poll })
  const { ack_token, outputs } = openEnvelope(bundle.gate, keys.privateKey)
  const ack = { method: 'POST', path: `${path}/ack`, headers: bearer(pollToken) }
  await withoutBody(world, { name: 'ack', ...ack })
  await withBodies(
    world,
    { name: 'ack', ...ack },
    {
      'nothing in it': {},
      'wrong token': { ack_token: `gtack_${'0'.repeat(40)}` },
      'unknown member': { ack_token, loud: true },
      'right token': { ack_token },
      'right token again': { ack_token },
      'wrong token afterwards': { ack_token: `gtack_${'0'.repeat(40)}` },
    },
  )
  await record({ name: 'poll after the acknowledgement', ...poll })
  await world.until(
    { method: 'GET', path: `${world.own}/events?type=gate.session.approved`, headers: world.live },
    ({ body: list }) => list.includes('"status":"succeeded"'),
  )
  const events = `${world.own}/events?type=gate.session.approved`
  await record({ name: 'event of an approval', method: 'GET', path: events, headers: world.live })
  return Object.values(outputs)[0] ?? ''
}

/** A signup for this server itself: the answer brings a new organization. */
async function systemSignup(world: World): Promise<void> {
  const { id, pollToken, keys } = await open(world, 'sign up for Tidegate', 'tidegate')
  const path = `${sessions}/${id}`
  const body = await approval(world, 'person who approves Tidegate', id)
  await world.record({
    name: 'approve Tidegate',
    method: 'POST',
    path: `${path}/approve`,
    headers: world.freshAddress(),
    body,
  })
  const poll = { name: 'poll Tidegate', method: 'GET', path, headers: bearer(pollToken) }
  const { delivery_bundle: bundle } = await world.read(poll)
  const { ack_token } = openEnvelope(bundle.gate, keys.privateKey)
  const ack = {
    name: 'ack Tidegate',
    method: 'POST',
    path: `${path}/ack`,
    headers: bearer(pollToken),
    body: { ack_token },
  }
  await world.record(ack)
}

async function login(world: World, service: Service, agentToken: string): Promise<void> {
  const { record, read, live, test, freshAddress } = world
  const create = {
    method: 'POST',
    path: logins,
    headers: { ...bearer(agentToken), ...freshAddress() },
  }
  await withoutBody(world, { name: 'log in', ...create })
  await withBodies(
    world,
    { name: 'log in', ...create },
    {
      'nothing in it': {},
      'unknown service': { service_id: 'nobody' },
      'service of another account': { service_id: 'tidegate' },
      'unknown member': { service_id: service.id, name: 'x' },
    },
  )
  const body = { service_id: service.id }
  const unknownToken = bearer(`agt_${'0'.repeat(40)}`)
  await record({ name: 'log in by a malformed token', ...create, headers: unknownToken, body })
  await record({ name: 'log in by a secret key', ...create, headers: live, body })
  const { id } = await read({ name: 'log in', ...create, body })
  const path = `${sessions}/${id}`
  await record({
    name: 'consent of a login',
    method: 'GET',
    path: `${path}/consent`,
    headers: freshAddress(),
  })
  await record({
    name: 'poll of a login',
    method: 'GET',
    path,
    headers: bearer('gtpoll_00000000000000000000000000'),
  })
  const proof = await approval(world, 'person who approves a login', id)
  const approve = { method: 'POST', path: `${path}/approve`, headers: freshAddress(), body: proof }
  const { code } = await read({ name: 'approve a login', ...approve })
  await record({ name: 'approve a login again', ...approve })
  const consume = { method: 'POST', path: `${logins}/consume`, headers: live }
  await withoutBody(world, { name: 'consume', ...consume })
  await withBodies(
    world,
    { name: 'consume', ...consume },
    {
      'nothing in it': {},
      'malformed code': { code: 'x' },
      'unknown code': { code: `gtcode_${'0'.repeat(40)}` },
      'unknown member': { code, name: 'x' },
    },
  )
  await record({ name: 'consume by a test key', ...consume, headers: test, body: { code } })
  const headers = { ...live, 'idempotency-key': 'consume' }
  await record({ name: 'consume', ...consume, headers, body: { code } })
  await record({ name: 'consume, repeated', ...consume, headers, body: { code } })
  await record({ name: 'consume again', ...consume, body: { code } })
  const other = await read({ name: 'log in to decline', ...create, body })
  const cancel = {
    name: 'cancel a login',
    method: 'POST',
    path: `${sessions}/${other.id}/cancel`,
    headers: freshAddress(),
  }
  await record(cancel)
}

async function tokens(world: World, agentToken: string): Promise<void> {
  const { record, live, test, organizations } = world
  for (const kind of ['verify', 'revoke']) {
    const request = { method: 'POST', path: `/v1/gate/agent-tokens/${kind}`, headers: live }
    await withoutBody(world, { name: kind, ...request })
    await withBodies(
      world,
      { name: kind, ...request },
      {
        'nothing in it': {},
        'malformed token': { agent_token: 'x' },
        'unknown token': { agent_token: `agt_${'0'.repeat(40)}` },
        'token of another type': { agent_token: 7 },
        'unknown member': { agent_token: agentToken, name: 'x' },
      },
    )
    const body = { agent_token: agentToken }
    await record({ name: `${kind} by a test key`, ...request, headers: test, body })
    await record({
      name: `${kind} by another organization`,
      ...request,
      headers: organizations.foreign.secret,
      body,
    })
    await record({ name: `${kind} a token`, ...request, body })
    await record({ name: `${kind} once more`, ...request, body })
  }
  const body = { agent_token: agentToken }
  await record({
    name: 'verify a revoked token',
    method: 'POST',
    path: '/v1/gate/agent-tokens/verify',
    headers: live,
    body,
  })
  const headers = bearer(agentToken)
  await record({
    name: 'log in by a revoked token',
    method: 'POST',
    path: logins,
    headers,
    body: { service_id: 'acme' },
  })
}

/** While the service has not answered: what the page and whoever polls are told. */
async function unansweredApproval(world: World): Promise<void> {
  const { record, read, quiet, own, live, receiver, freshAddress } = world
  const { id: webhook_endpoint_id } = await read({
    name: 'endpoint that does not answer',
    method: 'POST',
    path: `${own}/webhooks/endpoints`,
    headers: live,
    body: { name: 'Waits', url: receiver.url('/wait'), event_types: ['gate.session.approved'] },
  })
  const about = {
    name: 'Slow',
    description: 'Waits.',
    website,
    discoverable: true,
    webhook_endpoint_id,
  }
  await record({
    name: 'create slow service',
    method: 'POST',
    path: '/v1/gate/services',
    headers: live,
    body: { id: 'slow', ...about },
  })
  const { id, pollToken } = await open(world, 'sign up for the slow service', 'slow')
  const body = await approval(world, 'person who approves the slow service', id)
  const path = `${sessions}/${id}`
  const approving = quiet({
    method: 'POST',
    path: `${path}/approve`,
    headers: freshAddress(),
    body,
  })
  const poll = { method: 'GET', path, headers: bearer(pollToken) }
  await receiver.waiting
  await record({ name: 'poll while the service is asked', ...poll })
  await record({
    name: 'consent while the service is asked',
    method: 'GET',
    path: `${path}/consent`,
    headers: freshAddress(),
  })
  await record({
    name: 'cancel while the service is asked',
    method: 'POST',
    path: `${path}/cancel`,
    headers: freshAddress(),
  })
  receiver.release()
  await approving
  await record({ name: 'poll after a late answer', ...poll })
}

const website = 'https://slow.example'

/** A signup that its tool claims by the code of the page, and that is forgotten afterwards. */
async function claimed(world: World, service: Service): Promise<void> {
  const { record, quiet, until, own, test, live, freshAddress } = world
  const { delivery } = generateDeliveryKeys()
  const { id, poll_token: pollToken } = await world.read({
    name: 'sign up with a claim',
    method: 'POST',
    path: sessions,
    // Another network than the page's.
    headers: { 'x-forwarded-for': '2001:db8::7' },
    body: { service_id: service.id, account_name: 'Robin', delivery, claim: 'supported' },
  })
  const path = `${sessions}/${id}`
  const claim = { method: 'POST', path: `${path}/claim`, headers: bearer(pollToken) }
  await record({ name: 'claim before an approval', ...claim, body: { code: '000 000' } })
  const body = await approval(world, 'person who is shown a code', id)
  const approve = { method: 'POST', path: `${path}/approve`, headers: freshAddress(), body }
  const { data: asked } = parsed(await quiet(approve))
  await record({
    name: 'poll of one that waits for its code',
    method: 'GET',
    path,
    headers: claim.headers,
  })
  await record({ name: 'claim', ...claim, body: { code: asked.claim_code } })
  const poll = { method: 'GET', path, headers: claim.headers }
  const { data: approved } = parsed(
    await until(poll, ({ body: text }) => text.includes('"status":"approved"')),
  )
  const { data: shown } = parsed(await quiet({ ...approve, headers: freshAddress() }))
  const receipt_token = String(shown.receipt_url).split('#')[1]
  const erase = { method: 'POST', path: `${path}/erase` }
  const wrong = { receipt_token: `gtrcpt_${'0'.repeat(40)}` }
  await record({ name: 'erase by another receipt', ...erase, headers: freshAddress(), body: wrong })
  await record({
    name: 'erase by the receipt',
    ...erase,
    headers: freshAddress(),
    body: { receipt_token },
  })
  const account = { method: 'DELETE', path: `${own}/gate-accounts/${approved.gate_account_id}` }
  await record({ name: 'erase account by a test key', ...account, headers: test })
  await record({ name: 'erase account', ...account, headers: live })
}

function parsed({ body }: { body: Buffer }): { data: Record<string, unknown> } {
  return JSON.parse(body.toString('utf8'))
}
