import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { generateDeliveryKeys, sealEnvelope } from '../../infra/wire/delivery-envelope.ts'
import { sessionIdOf } from '../support/gate-integrator.ts'
import { openRaceWorld, type RaceWorld, type Signup } from '../support/gate-races.ts'
import {
  type Behaviour,
  halfBody,
  redirect,
  resetBeforeHeaders,
  silence,
  status,
} from '../support/webhook-behaviours.ts'

/** Faulty responses, by session, that the service gives before correct ones. */
const scripts = new Map<string, ((signUp: Behaviour) => Behaviour)[]>()
const env = { WEBHOOK_TIMEOUT_MS: '700', WEBHOOK_LEASE_MS: '1000' }
let world: RaceWorld

beforeAll(async () => {
  const choose = (id: string, signUp: Behaviour) => scripts.get(id)?.shift()?.(signUp) ?? signUp
  world = await openRaceWorld({ log: 'postgres', env, choose })
}, 120_000)
afterAll(() => world?.stop())

/** A signup whose service does this first, one after the other. */
async function signupWith(
  ...first: ((signUp: Behaviour) => Behaviour)[]
): Promise<Signup & { body: object }> {
  const signup = await world.open()
  scripts.set(signup.id, first)
  return { ...signup, body: await world.approval(signup.id) }
}

/** Approves as the page does: asks until the service has answered. */
async function approve({ id, body }: { id: string; body: object }, server = 0): Promise<string> {
  for (;;) {
    const { outcome } = await world.ask(`sessions/${id}/approve`, { server, body })
    if (outcome !== '409 gate.approval_in_progress') return outcome
    await delay(100)
  }
}

const always = (behaviour: Behaviour) => () => behaviour

function answering(content: unknown): Behaviour {
  const text = JSON.stringify(content)
  return {
    name: 'answer',
    meaning: 'refused',
    answer: (_request, response) => void response.end(text),
  }
}

function sealedTo(delivery: Parameters<typeof sealEnvelope>[1]['delivery']) {
  const payload = { version: 1 as const, outputs: { ACME_API_KEY: 'of another' } }
  return { encrypted_delivery: sealEnvelope(payload, { delivery, random: randomBytes }) }
}

/** All requests about the session are the same one: same account, same event. */
function requestsAbout(id: string) {
  const requests = world.integrator.requests.filter(({ body }) => sessionIdOf(body) === id)
  expect(new Set(requests.map(({ body, eventId }) => eventId + body)).size).toBeLessThanOrEqual(1)
  return requests.length
}

/** The account of an approved signup is whole: what it delivers is good, and there is one of each. */
async function expectWhole(signup: Signup, { server = 0 } = {}) {
  const { id, pollToken: token } = signup
  const delivered = await world.delivered(signup, server)
  const { ackToken: ack_token, agentToken: agent_token, outputs } = delivered
  expect(Object.keys(outputs)).toEqual(['ACME_API_KEY'])
  const verify = { server, token: world.cluster.owner.secret.key, body: { agent_token } }
  expect(await world.get('agent-tokens/verify', verify)).toMatchObject({
    valid: true,
    gate_account_id: world.integrator.accounts.get(id)?.gateAccountId,
  })
  const ack = { server, token, body: { ack_token } }
  expect((await world.ask(`sessions/${id}/ack`, ack)).outcome).toBe('200')
}

async function expectOneOfEach(signups: readonly { id: string }[], ends: 'Approved' | 'Rejected') {
  const history = await world.history()
  const none = ends === 'Approved' ? 'Rejected' : 'Approved'
  for (const { id } of signups) {
    const of = (type: string) => history.get(`${type} ${id}`) ?? 0
    expect([
      of('GateSessionApprovalStarted'),
      of(`GateSession${ends}`),
      of(`GateSession${none}`),
    ]).toEqual([1, 1, 0])
  }
}

test('a service that fails for a while is asked until it answers as it must', async () => {
  const other = await world.open()
  const signups = await Promise.all([
    signupWith(always(silence)),
    signupWith(always(status(500)), always(status(503))),
    signupWith(always(answering(sealedTo(generateDeliveryKeys().delivery)))),
    signupWith(always(answering(sealedTo(other.keys.delivery)))),
    signupWith(always(status(409))),
    signupWith(always(halfBody), always(status(200))),
    signupWith(always(resetBeforeHeaders)),
  ])
  const outcomes = await Promise.all(signups.map((signup) => approve(signup)))
  expect(new Set(outcomes)).toEqual(new Set(['200']))
  const counts = signups.map(({ id }) => requestsAbout(id))
  // A connection that broke without a byte may be replaced once within an attempt.
  expect(counts.slice(0, -1)).toEqual([2, 3, 2, 2, 2, 3])
  for (const signup of signups) await expectWhole(signup)
  await expectOneOfEach(signups, 'Approved')
}, 60_000)

test('a service that refuses ends the signup, and whoever asked for it is told what was wrong', async () => {
  const signups = await Promise.all([
    signupWith(always(status(400))),
    signupWith(always(status(500)), always(status(403))),
    signupWith(always(redirect(307, world.integrator.url('/elsewhere')))),
  ])
  const outcomes = await Promise.all(signups.map((signup) => approve(signup)))
  expect(new Set(outcomes)).toEqual(new Set(['409 gate.session_already_resolved']))
  for (const [index, { id, pollToken: token }] of signups.entries()) {
    const polled = await world.get(`sessions/${id}`, { method: 'GET', token })
    const problem = `The service answered with status ${[400, 403, 307][index]}.`
    expect(polled).toMatchObject({ status: 'rejected', reason: 'integrator_failed', problem })
  }
  await expectOneOfEach(signups, 'Rejected')
}, 60_000)

/** The service has the request; `answered`: and has just answered it. */
function stopsAt(moment: 'asked' | 'answered') {
  const { promise: reached, resolve } = Promise.withResolvers<void>()
  const behaviour = (signUp: Behaviour): Behaviour => ({
    ...signUp,
    name: moment,
    async answer(request, response) {
      if (moment === 'asked') return resolve()
      response.once('finish', resolve)
      await signUp.answer(request, response)
    },
  })
  return { reached, behaviour }
}

test('a server that is killed while services answer leaves the approvals to another, or to the next', async () => {
  const asked = Array.from({ length: 4 }, () => stopsAt('asked'))
  const [left, ...signups] = await Promise.all(asked.map(({ behaviour }) => signupWith(behaviour)))
  const last = stopsAt('answered')
  const answered = await signupWith(last.behaviour)
  if (!left) throw new Error('no signup is left')
  const lost = signups.map((signup) => approve(signup).catch(() => 'killed'))
  await Promise.all(asked.slice(1).map(({ reached }) => reached))
  lost.push(approve(answered).catch(() => 'killed'))
  await last.reached
  await world.cluster.kill(0)
  await Promise.all(lost)
  const all = [...signups, answered]
  expect(new Set(await Promise.all(all.map((signup) => approve(signup, 1))))).toEqual(
    new Set(['200']),
  )
  for (const { id } of signups) expect(requestsAbout(id)).toBe(2)
  // Its approval may have been written before the end.
  expect(requestsAbout(answered.id)).toBeLessThanOrEqual(2)
  for (const signup of all) await expectWhole(signup, { server: 1 })

  const alone = approve(left, 1).catch(() => 'killed')
  await asked[0]?.reached
  const poll = { server: 1, method: 'GET', token: left.pollToken } as const
  expect(await world.get(`sessions/${left.id}`, poll)).toMatchObject({
    status: 'pending',
    approval: 'in_progress',
  })
  await world.cluster.kill(1)
  await alone
  const { baseUrl } = await world.cluster.serve('api,gate,projections')
  world.cluster.baseUrls.push(baseUrl)
  expect(await approve(left, 2)).toBe('200')
  expect(requestsAbout(left.id)).toBe(2)
  await expectWhole(left, { server: 2 })
  await expectOneOfEach([...all, left], 'Approved')
}, 90_000)
