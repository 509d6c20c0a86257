import {
  type DeliveryKeys,
  generateDeliveryKeys,
  openEnvelope,
} from '../../../infra/wire/delivery-envelope.ts'
import { json } from '../http.ts'
import { changedToken, visit } from '../visit.ts'
import { bearer, type World } from '../world.ts'
import type { Service } from './gate-services.ts'

const sessions = '/v1/gate/sessions'
const logins = '/v1/gate/login-sessions'
const unknown = `gate_${'0'.repeat(26)}`
const evil = { origin: 'https://evil.example' }

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

async function open(world: World, name: string, serviceId: string): Promise<Opened> {
  const keys = generateDeliveryKeys()
  const body = {
    service_id: serviceId,
    account_name: 'Robin',
    metadata: { plan: 'free', seats: 2 },
    delivery: keys.delivery,
  }
  const headers = { ...world.freshAddress(), 'user-agent': 'agent/1.0' }
  const { id, poll_token: pollToken } = await world.read(name, `POST ${sessions}`, headers, body)
  return { id, pollToken, keys }
}

async function openings(world: World, { id }: Service): Promise<void> {
  const { record, recordMalformed, freshAddress } = world
  const { delivery } = generateDeliveryKeys()
  const good = { service_id: id, account_name: 'Robin', delivery }
  const changed = (changes: object) => ({ ...good, ...changes })
  const nested = { a: { b: { c: { d: { e: { f: { g: { h: { i: 1 } } } } } } } } }
  const much = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`k${i}`, i]))
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
    'much metadata': changed({ metadata: much }),
    'no delivery': changed({ delivery: undefined }),
    'another version of delivery': changed({ delivery: { ...delivery, version: 2 } }),
    'another algorithm': changed({ delivery: { ...delivery, algorithm: 'rsa' } }),
    'key id of another key': changed({ delivery: { ...delivery, key_id: 'A'.repeat(43) } }),
    'key that is none': changed({ delivery: { ...delivery, public_key: 'abc' } }),
    'unknown member': changed({ price: 5 }),
  }
  const create = `POST ${sessions}`
  // Each from an address of its own: an address may open five a minute.
  for (const [what, body] of Object.entries(bodies))
    await record(`sign up: ${what}`, create, freshAddress(), body)
  await recordMalformed('sign up', create, freshAddress)
  const once = { ...freshAddress(), 'idempotency-key': 'signup' }
  await record('sign up, once', create, once, good)
  await record('sign up, repeated', create, once, good)
  await record('sign up, another body', create, once, changed({ account_name: 'Sam' }))
}

/** Sessions that nobody approves. */
async function closings(world: World, service: Service): Promise<void> {
  const { record, freshAddress } = world
  for (const [what, id] of Object.entries({ unknown, nonsense: 'nonsense' })) {
    const path = `${sessions}/${id}`
    const headers = { ...freshAddress(), ...bearer('gtpoll_00000000000000000000000000') }
    await record(`poll ${what}`, `GET ${path}`, headers)
    await record(`consent ${what}`, `GET ${path}/consent`, headers)
    await record(`approve ${what}`, `POST ${path}/approve`, headers, {})
    await record(`cancel ${what}`, `POST ${path}/cancel`, headers)
    await record(`ack ${what}`, `POST ${path}/ack`, headers, { ack_token: 'x' })
    await record(`page ${what}`, `GET /gate/consent/${id}`)
  }
  const { id, pollToken } = await open(world, 'sign up to decline', service.id)
  const other = await open(world, 'sign up of another', 'tidegate')
  const path = `${sessions}/${id}`
  const poll = `GET ${path}`
  await record('poll', poll, bearer(pollToken))
  await record('poll by another token', poll, bearer(other.pollToken))
  await record('poll by a malformed token', poll, bearer('gtpoll_x'))
  await record('poll by a secret key', poll, world.live)
  await record('consent page', `GET /gate/consent/${id}`)
  const consent = `GET ${path}/consent`
  const address = freshAddress()
  await record('consent', consent, address)
  await record('consent from its page', consent, { ...freshAddress(), origin: world.baseUrl })
  await record('consent from another page', consent, evil)
  await record('consent from another site', consent, { 'sec-fetch-site': 'cross-site' })
  const body = { ack_token: `gtack_${'0'.repeat(40)}` }
  await record('ack of a pending one', `POST ${path}/ack`, bearer(pollToken), body)
  await refusedApprovals(world, path)
  const cancel = `POST ${path}/cancel`
  const closing = freshAddress()
  await record('cancel from another page', cancel, evil)
  await record('cancel with a body', cancel, closing, { reason: 'x' })
  await record('cancel', cancel, closing)
  await record('cancel again', cancel, closing)
  await record('poll of a declined one', poll, bearer(pollToken))
  await record('consent of a declined one', consent, address)
  await record('approve a declined one', `POST ${path}/approve`, freshAddress(), {})
  const byClosing = `POST ${sessions}/${other.id}/cancel?closing=1`
  await record('cancel by closing the page', byClosing, closing)
}

async function refusedApprovals(
  { record, recordMalformed, freshAddress }: World,
  path: string,
): Promise<void> {
  const approve_token = `gtapr_${'0'.repeat(40)}`
  const bodies: Record<string, object> = {
    'nothing in it': {},
    'unknown token': { approve_token, sealed_token: 'x' },
    'malformed token': { approve_token: 'x', sealed_token: 'x' },
    'long token': { approve_token: 'x'.repeat(201) },
    'no proof': { approve_token },
    'unknown member': { approve_token, sealed_token: 'x', name: 'x' },
  }
  for (const [what, body] of Object.entries(bodies))
    await record(`approve: ${what}`, `POST ${path}/approve`, freshAddress(), body)
  await recordMalformed('approve', `POST ${path}/approve`, freshAddress)
}

/** Returns what the consent page posts when a person approves: its token and the hand-off of its own session. */
async function approval(world: World, name: string, id: string, person: 'robin' | 'bot' = 'robin') {
  const page = await world.ask(`GET /gate/consent/${id}`)
  const publishableKey = /\bpk_test_[0-9a-z]+/.exec(page.body.toString('utf8'))?.[0] ?? ''
  const pageUrl = `${world.baseUrl}/gate/consent/${id}`
  const visitor = await visit(world, { name, person, publishableKey, address: '62.1.9.9', pageUrl })
  const consent = `GET ${sessions}/${id}/consent`
  const { approve_token } = await world.read(`${name}: consent`, consent, world.freshAddress())
  const { sealedToken, sessionId } = await visitor.finish(approve_token)
  return { approve_token, sealed_token: sealedToken, session_id: sessionId }
}

async function signup(world: World, service: Service): Promise<string> {
  const { record, recordEach, recordMalformed, read, freshAddress, own, live } = world
  const { id, pollToken, keys } = await open(world, 'sign up to approve', service.id)
  const path = `${sessions}/${id}`
  const approve = `POST ${path}/approve`
  const bot = await approval(world, 'bot that approves', id, 'bot')
  await record('approve as a bot', approve, freshAddress(), bot)
  const body = await approval(world, 'person who approves', id)
  const send = (name: string, changes: object) =>
    record(name, approve, freshAddress(), { ...body, ...changes })
  await send('approve with a changed proof', { sealed_token: changedToken(body.sealed_token) })
  await send('approve with the proof of another session', { session_id: `sid_${'0'.repeat(26)}` })
  await send('approve without a proof', { sealed_token: undefined })
  await record('approve from another page', approve, evil, body)
  const once = { ...freshAddress(), 'idempotency-key': 'approval' }
  await record('approve', approve, once, body)
  await record('approve, repeated', approve, once, body)
  await send('approve again', {})
  await record('cancel an approved one', `POST ${path}/cancel`, freshAddress())
  const polling = bearer(pollToken)
  const { delivery_bundle: bundle } = await read('poll an approved one', `GET ${path}`, polling)
  const { ack_token, outputs } = openEnvelope(bundle.gate, keys.privateKey)
  await recordMalformed('ack', `POST ${path}/ack`, () => polling)
  await recordEach('ack', `POST ${path}/ack`, polling, {
    'nothing in it': {},
    'wrong token': { ack_token: `gtack_${'0'.repeat(40)}` },
    'unknown member': { ack_token, loud: true },
    'right token': { ack_token },
    'right token again': { ack_token },
    'wrong token afterwards': { ack_token: `gtack_${'0'.repeat(40)}` },
  })
  await record('poll after the acknowledgement', `GET ${path}`, polling)
  const events = `GET ${own}/events?type=gate.session.approved`
  await world.until(events, live, ({ body: list }) => list.includes('"status":"succeeded"'))
  await record('event of an approval', events, live)
  return Object.values(outputs)[0] ?? ''
}

/** A signup for this server itself: the answer brings a new organization. */
async function systemSignup(world: World): Promise<void> {
  const { record, read, freshAddress } = world
  const { id, pollToken, keys } = await open(world, 'sign up for Tidegate', 'tidegate')
  const path = `${sessions}/${id}`
  const body = await approval(world, 'person who approves Tidegate', id)
  await record('approve Tidegate', `POST ${path}/approve`, freshAddress(), body)
  const polling = bearer(pollToken)
  const { delivery_bundle: bundle } = await read('poll Tidegate', `GET ${path}`, polling)
  const { ack_token } = openEnvelope(bundle.gate, keys.privateKey)
  await record('ack Tidegate', `POST ${path}/ack`, polling, { ack_token })
}

async function login(world: World, service: Service, agentToken: string): Promise<void> {
  const { record, recordEach, recordMalformed, read, live, test, freshAddress } = world
  const create = `POST ${logins}`
  const byAgent = { ...bearer(agentToken), ...freshAddress() }
  await recordMalformed('log in', create, () => byAgent)
  await recordEach('log in', create, byAgent, {
    'nothing in it': {},
    'unknown service': { service_id: 'nobody' },
    'service of another account': { service_id: 'tidegate' },
    'unknown member': { service_id: service.id, name: 'x' },
  })
  const asked = { service_id: service.id }
  const unknownToken = bearer(`agt_${'0'.repeat(40)}`)
  await record('log in by a malformed token', create, unknownToken, asked)
  await record('log in by a secret key', create, live, asked)
  const { id } = await read('log in', create, byAgent, asked)
  const path = `${sessions}/${id}`
  await record('consent of a login', `GET ${path}/consent`, freshAddress())
  await record('poll of a login', `GET ${path}`, bearer('gtpoll_00000000000000000000000000'))
  const proof = await approval(world, 'person who approves a login', id)
  const address = freshAddress()
  const { code } = await read('approve a login', `POST ${path}/approve`, address, proof)
  await record('approve a login again', `POST ${path}/approve`, address, proof)
  const consume = `POST ${logins}/consume`
  await recordMalformed('consume', consume, () => live)
  await recordEach('consume', consume, live, {
    'nothing in it': {},
    'malformed code': { code: 'x' },
    'unknown code': { code: `gtcode_${'0'.repeat(40)}` },
    'unknown member': { code, name: 'x' },
  })
  await record('consume by a test key', consume, test, { code })
  const once = { ...live, 'idempotency-key': 'consume' }
  await record('consume', consume, once, { code })
  await record('consume, repeated', consume, once, { code })
  await record('consume again', consume, live, { code })
  const other = await read('log in to decline', create, byAgent, asked)
  await record('cancel a login', `POST ${sessions}/${other.id}/cancel`, freshAddress())
}

async function tokens(world: World, agentToken: string): Promise<void> {
  const { record, recordEach, recordMalformed, live, test, organizations } = world
  const body = { agent_token: agentToken }
  for (const kind of ['verify', 'revoke']) {
    const line = `POST /v1/gate/agent-tokens/${kind}`
    await recordMalformed(kind, line, () => live)
    await recordEach(kind, line, live, {
      'nothing in it': {},
      'malformed token': { agent_token: 'x' },
      'unknown token': { agent_token: `agt_${'0'.repeat(40)}` },
      'token of another type': { agent_token: 7 },
      'unknown member': { agent_token: agentToken, name: 'x' },
    })
    await record(`${kind} by a test key`, line, test, body)
    await record(`${kind} by another organization`, line, organizations.foreign.secret, body)
    await record(`${kind} a token`, line, live, body)
    await record(`${kind} once more`, line, live, body)
  }
  await record('verify a revoked token', 'POST /v1/gate/agent-tokens/verify', live, body)
  const login = { service_id: 'acme' }
  await record('log in by a revoked token', `POST ${logins}`, bearer(agentToken), login)
  const listed = await record('list agent accounts', 'GET /v1/gate/agent-accounts', live)
  const account = json<{ id: string }[]>(listed).data[0]?.id
  const line = `DELETE /v1/gate/agent-accounts/${account}/token`
  await record('revoke the token of an account', line, live)
  await record('revoke the token of an account by a test key', line, test)
  await record('count signups', 'GET /v1/gate/signup-counts', live)
  await record('count signups since a malformed time', 'GET /v1/gate/signup-counts?since=1', live)
}

/** While the service has not answered: what the page and whoever polls are told. */
async function unansweredApproval(world: World): Promise<void> {
  const { record, read, ask, own, live, receiver, freshAddress } = world
  const endpoint = {
    name: 'Waits',
    url: receiver.url('/wait'),
    event_types: ['gate.session.approved'],
  }
  const endpoints = `POST ${own}/webhooks/endpoints`
  const made = await read('endpoint that does not answer', endpoints, live, endpoint)
  await record('create slow service', 'POST /v1/gate/services', live, {
    id: 'slow',
    name: 'Slow',
    description: 'Waits.',
    website: 'https://slow.example',
    discoverable: true,
    webhook_endpoint_id: made.id,
  })
  const { id, pollToken } = await open(world, 'sign up for the slow service', 'slow')
  const body = await approval(world, 'person who approves the slow service', id)
  const path = `${sessions}/${id}`
  const approving = ask(`POST ${path}/approve`, freshAddress(), body)
  await receiver.waiting
  await record('poll while the service is asked', `GET ${path}`, bearer(pollToken))
  await record('consent while the service is asked', `GET ${path}/consent`, freshAddress())
  await record('cancel while the service is asked', `POST ${path}/cancel`, freshAddress())
  receiver.release()
  await approving
  await record('poll after a late answer', `GET ${path}`, bearer(pollToken))
}

/** A signup that its tool claims by the code of the page, and that is forgotten afterwards. */
async function claimed(world: World, service: Service): Promise<void> {
  const { record, ask, until, own, test, live, freshAddress } = world
  const { delivery } = generateDeliveryKeys()
  // Another network than the page's.
  const elsewhere = { 'x-forwarded-for': '2001:db8::7' }
  const asked = { service_id: service.id, account_name: 'Robin', delivery, claim: 'supported' }
  const opened = await world.read('sign up with a claim', `POST ${sessions}`, elsewhere, asked)
  const path = `${sessions}/${opened.id}`
  const polling = bearer(opened.poll_token)
  const claim = `POST ${path}/claim`
  await record('claim before an approval', claim, polling, { code: '000 000' })
  const body = await approval(world, 'person who is shown a code', opened.id)
  const approve = `POST ${path}/approve`
  const { claim_code: code } = parsed(await ask(approve, freshAddress(), body))
  await record('poll of one that waits for its code', `GET ${path}`, polling)
  await record('claim', claim, polling, { code })
  const { gate_account_id: account } = parsed(
    await until(`GET ${path}`, polling, (one) => one.body.includes('"status":"approved"')),
  )
  const { receipt_url } = parsed(await ask(approve, freshAddress(), body))
  const receipt_token = String(receipt_url).split('#')[1]
  const erase = `POST ${path}/erase`
  const wrong = { receipt_token: `gtrcpt_${'0'.repeat(40)}` }
  await record('erase by another receipt', erase, freshAddress(), wrong)
  await record('erase by the receipt', erase, freshAddress(), { receipt_token })
  await record('erase account by a test key', `DELETE ${own}/gate-accounts/${account}`, test)
  await record('erase account', `DELETE ${own}/gate-accounts/${account}`, live)
}

function parsed({ body }: { body: Buffer }): Record<string, unknown> {
  return JSON.parse(body.toString('utf8')).data
}
