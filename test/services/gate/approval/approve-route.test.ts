import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { generateToken, tokenHashes } from '../../../../infra/crypto/tokens.ts'
import { type GateSessionId, randomId } from '../../../../infra/ids.ts'
import { sealToken } from '../../../../infra/wire/sealed-token.ts'
import { type Gate, startGate } from '../../../../services/gate/gate.ts'
import { changeService } from '../../../../services/gate/registry/commands.ts'
import { gateRoutes } from '../../../../services/gate/routes.ts'
import { sessionTtlMs } from '../../../../services/gate/sessions.ts'
import { freshAddress } from '../../../support/gate-flow.ts'
import { handOffFor } from '../../../support/gate-proof.ts'
import { loginOpened, signedUp } from '../given.ts'
import type { GateOwner } from '../../../support/gate-world.ts'
import { setStatus } from '../../../support/organization-status.ts'
import { createServiceApp } from '../../../support/service-app.ts'
import { type ApprovalWorld, account, openApprovalWorld, responding } from './world.ts'

let world: ApprovalWorld
let gate: Gate
let app: FastifyInstance
let owner: GateOwner

beforeAll(async () => {
  world = await openApprovalWorld()
  owner = await world.owner()
  gate = startGate(world.options)
  const { app: made, context } = await createServiceApp(world, { trustedProxies: ['127.0.0.1'] })
  app = made
  await gateRoutes(app, { ...context, gate })
})
afterAll(async () => {
  await app.close()
  await gate.stop()
  await world.close()
})
beforeEach(() => {
  world.script.answer = account
})

interface Sent {
  body?: unknown
  headers?: Record<string, string>
  /** Default: one that has not asked yet. */
  ip?: string
}

async function post(id: string, { body, headers = {}, ip = freshAddress() }: Sent = {}) {
  const response = await app.inject({
    method: 'POST',
    url: `/v1/gate/sessions/${id}/approve`,
    headers: { 'content-type': 'application/json', 'x-forwarded-for': ip, ...headers },
    payload: typeof body === 'string' ? body : JSON.stringify(body ?? {}),
  })
  return { status: response.statusCode, headers: response.headers, body: response.json() }
}

interface ProofChanges {
  verdict?: string
  ageMs?: number
  url?: string
  handOff?: object
}

const proofSessionId = `sid_${'0'.repeat(26)}`

/** What the consent page's own session was handed. */
function proofFor(
  id: string,
  approveToken: string,
  { verdict = 'human', ageMs = 1000, url, handOff }: ProofChanges = {},
): string {
  const payload = {
    session_id: proofSessionId,
    decision: {
      event_id: randomId('evt', randomBytes),
      verdict,
      risk_score: 12,
      evaluated_at: new Date(world.now.ms - ageMs).toISOString(),
    },
    request: { url: url ?? `https://tidegate.example/gate/consent/${id}` },
    hand_off: { ...handOffFor(approveToken), ...handOff },
  }
  return sealToken({ payload, secretHashes: [world.secretHash], random: randomBytes })
}

async function approving(id: GateSessionId, changes?: ProofChanges) {
  const approve_token = await gate.parts.pages.open(id)
  return { approve_token, sealed_token: proofFor(id, approve_token, changes) }
}

/** How many rows were ever inserted, by a trigger that the first call makes. */
async function rowsWritten(table: 'idempotency_keys' | 'gate_leases'): Promise<number> {
  await world.pool.query(`
    create sequence if not exists written_${table};
    create or replace function count_${table}() returns trigger language plpgsql as
      $$ begin perform nextval('written_${table}'); return new; end $$;
    create or replace trigger counted before insert on tidegate.${table}
      for each row execute function count_${table}()`)
  const { rows } = await world.pool.query<{ written: number }>(
    `select (case when is_called then last_value else 0 end)::int as written from written_${table}`,
  )
  return rows[0]?.written ?? Number.NaN
}

const refused = (status: number, code: string) => ({ status, body: { error: { code } } })

describe('a signup', () => {
  test('is approved once its service has answered', async () => {
    const signup = await world.signup(owner)
    const answer = await post(signup.id, {
      body: { ...(await approving(signup.id)), session_id: proofSessionId },
      headers: { origin: 'https://tidegate.example' },
    })
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'cache-control': 'no-store' },
      body: { data: { object: 'gate_session', id: signup.id, status: 'approved' } },
    })
    const { integrator } = await world.delivered(signup)
    expect(Object.keys(integrator.outputs)).toEqual(['ACME_API_KEY'])
    expect(await world.find(signup.id)).toMatchObject({ verdict: 'human', risk_score: 12 })
  })

  test('of the built-in service delivers the keys of a new organization', async () => {
    const signup = await world.signup()
    expect(await post(signup.id, { body: await approving(signup.id) })).toMatchObject({
      status: 200,
    })
    expect((await world.delivered(signup)).integrator.outputs.TIDEGATE_SECRET_KEY).toMatch(
      /^sk_live_/,
    )
  })

  test('is in progress while its service is silent; the same request asks again, as often as it likes', async () => {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>()
    world.script.answer = async (sent) => {
      await held
      return account(sent)
    }
    const signup = await world.signup(owner)
    const ip = freshAddress()
    const body = await approving(signup.id)
    const first = await post(signup.id, { body, ip })
    expect(first).toMatchObject(refused(409, 'gate.approval_in_progress'))
    expect(first.headers['retry-after']).toBe('1')
    const again = Array.from({ length: 8 }, () => post(signup.id, { body, ip }))
    // The page was reloaded: its new token asks, too, without a proof.
    const reloaded = await gate.parts.pages.open(signup.id)
    again.push(post(signup.id, { body: { approve_token: reloaded }, ip }))
    letGo()
    expect(new Set((await Promise.all(again)).map(({ status }) => status))).toEqual(new Set([200]))
    expect(world.sentTo(signup.id)).toHaveLength(1)
    expect(await post(signup.id, { body, ip })).toMatchObject({ status: 200 })
  })

  test('is rejected when its service refuses, and whoever approved learns so again', async () => {
    world.script.answer = responding(422)
    const signup = await world.signup(owner)
    const body = await approving(signup.id)
    for (const _time of [1, 2]) {
      const answer = await post(signup.id, { body })
      expect(answer).toMatchObject(refused(409, 'gate.session_already_resolved'))
      expect(answer.body.error.message).toMatch(/service could not provide/)
    }
  })

  test('64 at once start one approval', async () => {
    const signup = await world.signup(owner)
    const body = await approving(signup.id)
    const answers = await Promise.all(Array.from({ length: 64 }, () => post(signup.id, { body })))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(world.sentTo(signup.id)).toHaveLength(1)
    expect(await world.count('GateSessionApprovalStarted', signup.id)).toBe(1)
    expect(await world.count('GateSessionApproved', signup.id)).toBe(1)
  })

  test('an Idempotency-Key repeats the answer', async () => {
    const signup = await world.signup(owner)
    const body = await approving(signup.id)
    const headers = { 'idempotency-key': 'click-1' }
    const first = await post(signup.id, { body, headers })
    const second = await post(signup.id, { body, headers })
    expect(second.headers['idempotent-replayed']).toBe('true')
    expect(second.body).toEqual(first.body)
  })

  test('an Idempotency-Key stays with its body, and what it repeats is not another attempt', async () => {
    const signup = await world.signup(owner)
    const body = await approving(signup.id)
    const headers = { 'idempotency-key': 'click-2' }
    const ip = freshAddress()
    const first = await post(signup.id, { body, headers, ip })
    for (let i = 0; i < 4; i++)
      expect((await post(signup.id, { body, headers, ip })).body).toEqual(first.body)
    for (const changed of [{ ...body, session_id: proofSessionId }, {}]) {
      const answer = await post(signup.id, { body: changed, headers, ip })
      expect(answer).toMatchObject({
        status: 422,
        body: { error: { details: { header_name: 'Idempotency-Key' } } },
      })
    }
    const bad = { 'idempotency-key': 'x'.repeat(256) }
    expect(await post(signup.id, { body, headers: bad, ip })).toMatchObject({ status: 422 })
  })

  test('nothing is stored for questions about the outcome, nor for attempts that are one too many', async () => {
    const [approved, refusedOnes] = [await world.signup(owner), await world.signup(owner)]
    const body = await approving(approved.id)
    expect(await post(approved.id, { body })).toMatchObject({ status: 200 })
    const ip = freshAddress()
    for (let i = 0; i < 3; i++) await post(refusedOnes.id, { ip })
    const before = await rowsWritten('idempotency_keys')
    const keyed = (n: number) => ({ 'idempotency-key': `fresh-${n}` })
    for (let n = 0; n < 3; n++) {
      expect(await post(approved.id, { body, headers: keyed(n) })).toMatchObject({ status: 200 })
      expect(await post(refusedOnes.id, { ip, headers: keyed(n) })).toMatchObject({ status: 429 })
    }
    expect(await rowsWritten('idempotency_keys')).toBe(before)
  })

  test('that has ended is not worked on when somebody asks', async () => {
    const signups = [await world.signup(owner), await world.signup(owner)] as const
    const bodies: object[] = []
    for (const [n, { id }] of signups.entries()) {
      world.script.answer = n === 0 ? account : responding(422)
      const body = await approving(id)
      bodies.push(body)
      await post(id, { body })
    }
    const before = await rowsWritten('gate_leases')
    expect(await post(signups[0].id, { body: bodies[0] })).toMatchObject({ status: 200 })
    expect(await post(signups[1].id, { body: bodies[1] })).toMatchObject({ status: 409 })
    expect(await rowsWritten('gate_leases')).toBe(before)
  })

  test('of a service that cannot be read stays as it was', async () => {
    const signup = await world.signup({ ...owner, serviceId: 'not-yet-readable' })
    const body = await approving(signup.id)
    expect(await post(signup.id, { body })).toMatchObject(refused(503, 'service.unavailable'))
    expect(await world.find(signup.id)).toMatchObject({
      status: 'pending',
      approval_started_at: null,
    })
  })

  test('stays approvable when its service was disabled', async () => {
    const other = await world.owner()
    const signup = await world.signup(other)
    const { serviceId: service_id, organizationId: organization_id } = other
    const disabled = {
      service_id,
      organization_id,
      environment: 'live' as const,
      disabled_at: world.now.ms,
    }
    await world.happenTo(service_id, { type: 'GateServiceDisabled', data: disabled })
    expect(await post(signup.id, { body: await approving(signup.id) })).toMatchObject({
      status: 200,
    })
  })
})

describe('a login', () => {
  async function login(fields: Parameters<ApprovalWorld['owner']>[0] = {}) {
    return (await loginTo(await world.owner(fields))).id
  }

  async function loginTo(service: GateOwner) {
    const [signup, id] = [randomId('gate', randomBytes), randomId('gate', randomBytes)]
    const gate_account_id = randomId('gacct', randomBytes)
    const at = world.now.ms
    const account = { gate_session_id: signup, gate_account_id, agent_token_hash: signup, at }
    for (const event of signedUp(service, account)) await world.happen(event, signup)
    const { serviceId: service_id, organizationId: organization_id } = service
    const opened = {
      gate_session_id: id,
      service_id,
      organization_id,
      gate_account_id,
      opened_at: at,
    }
    await world.happen(loginOpened(opened), id)
    const revoke = () => {
      const data = { gate_session_id: signup, gate_account_id, revoked_at: world.now.ms }
      return world.happen({ type: 'AgentTokenRevoked', data }, signup)
    }
    return { id, revoke }
  }

  test('is approved with a code, and the same request is told the same one', async () => {
    const id = await login({
      fields: { dashboard_login_url: 'https://acme.example/auth/gate?from=cli' },
    })
    const ip = freshAddress()
    const body = await approving(id)
    const first = await post(id, { body, ip })
    const { code } = first.body.data
    const redirect_url = `https://acme.example/auth/gate?from=cli&code=${code}`
    expect(first).toMatchObject({
      status: 200,
      headers: { 'cache-control': 'no-store' },
      body: { data: { object: 'gate_login_session', id, status: 'approved', redirect_url } },
    })
    for (let i = 0; i < 5; i++)
      expect((await post(id, { body, ip })).body.data).toEqual(first.body.data)
    expect(await world.count('LoginSessionApproved', id)).toBe(1)
    expect(world.sentTo(id)).toEqual([])
  })

  test('leads to where its page says, whatever the service says since', async () => {
    const shown = 'https://acme.example/auth/gate'
    const service = await world.owner({ fields: { dashboard_login_url: shown } })
    const token = generateToken('agt', randomBytes)
    const [agent_token_hash] = tokenHashes(world.options.keyring, token)
    const [gate_session_id, gate_account_id] = [
      randomId('gate', randomBytes),
      randomId('gacct', randomBytes),
    ]
    const account = { gate_session_id, gate_account_id, agent_token_hash, at: world.now.ms }
    for (const event of signedUp(service, account)) await world.happen(event, gate_session_id)
    const ask = async (method: 'GET' | 'POST', path: string, payload?: object) => {
      const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': freshAddress() }
      const url = `/v1/gate/${path}`
      return (await app.inject({ method, url, headers, ...(payload && { payload }) })).json().data
    }
    const { id } = await ask('POST', 'login-sessions', { service_id: service.serviceId })
    const move = (dashboard_login_url: string | null) => {
      const { deps } = world
      return changeService(deps, { ...service, dashboard_login_url })
    }
    await move('https://evil.example/auth')
    expect((await ask('GET', `sessions/${id}/consent`)).service.dashboard_login_url).toBe(shown)
    const body = await approving(id)
    const { data } = (await post(id, { body })).body
    expect(data.redirect_url).toBe(`${shown}?code=${data.code}`)
    await move(null)
    expect((await post(id, { body })).body.data).toEqual({ ...data, redirect_url: null })
  })

  test.each([{ challenge_answered: false }, { input_observed: false }, { binding: null }])(
    'is not approved by a proof with %o, and stays to be approved',
    async (handOff) => {
      const id = await login()
      expect(await post(id, { body: await approving(id, { handOff }) })).toMatchObject(
        refused(403, 'gate.svc_proof_invalid'),
      )
      expect(await post(id, { body: await approving(id) })).toMatchObject({ status: 200 })
    },
  )

  test('to the service of an organization that is not active is refused, and stays to be approved', async () => {
    const service = await world.owner()
    const { id } = await loginTo(service)
    const { organizationId } = service
    const body = await approving(id)
    await setStatus(world.deps, organizationId, 'suspended')
    expect(await post(id, { body })).toMatchObject(refused(404, 'request.not_found'))
    expect(await world.find(id)).toMatchObject({ status: 'pending', code_hash: null })
    await setStatus(world.deps, organizationId, 'active')
    expect(await post(id, { body })).toMatchObject({ status: 200 })
  })

  test('whose agent token was revoked since is refused, so that nobody is sent to a dashboard in vain', async () => {
    const { id, revoke } = await loginTo(await world.owner())
    const body = await approving(id)
    await revoke()
    expect(await post(id, { body })).toMatchObject(refused(410, 'gate.session_expired'))
    expect(await world.count('LoginSessionApproved', id)).toBe(0)
  })

  test('gives its code to nobody else, nor twice, nor late', async () => {
    const [reloaded, used, late] = [await login(), await login(), await login()]
    const bodies = new Map<string, object>()
    for (const id of [reloaded, used, late]) {
      const body = await approving(id)
      bodies.set(id, body)
      expect(await post(id, { body })).toMatchObject({ status: 200 })
    }
    const other = { body: await approving(reloaded) }
    expect(await post(reloaded, other)).toMatchObject(refused(409, 'gate.session_already_resolved'))
    const consumed = { gate_session_id: used, consumption_id: 'evt_1', consumed_at: world.now.ms }
    await world.happen({ type: 'LoginCodeConsumed', data: consumed }, used)
    expect(await post(used, { body: bodies.get(used) })).toMatchObject(
      refused(409, 'gate.session_already_resolved'),
    )
    world.now.ms += 5 * 60_000
    expect(await post(late, { body: bodies.get(late) })).toMatchObject(
      refused(410, 'gate.session_expired'),
    )
  })
})

describe('what is refused', () => {
  test('no such session', async () => {
    for (const id of ['gate_x', randomId('gate', randomBytes)])
      expect(await post(id)).toMatchObject(refused(404, 'gate.session_not_found'))
  })

  test('no token, a wrong one, and one of another session', async () => {
    const signup = await world.signup(owner)
    const { sealed_token } = await approving(signup.id)
    const foreign = await gate.parts.pages.open((await world.signup(owner)).id)
    const tokens = [undefined, '', 'x', generateToken('gtapr', randomBytes), foreign]
    for (const approve_token of tokens) {
      const answer = await post(signup.id, { body: { approve_token, sealed_token } })
      expect(answer).toMatchObject(refused(403, 'gate.approve_token_invalid'))
    }
  })

  const proofs: [string, number, (id: string, approveToken: string) => unknown][] = [
    ['gate.svc_proof_required', 422, () => undefined],
    ['gate.svc_proof_required', 422, () => ''],
    ['gate.svc_proof_invalid', 403, () => 'x'],
    ['gate.svc_proof_invalid', 403, (id, token) => proofFor(id, token, { ageMs: 121_000 })],
    ['gate.svc_proof_invalid', 403, (_id, token) => proofFor(randomId('gate', randomBytes), token)],
    ['gate.svc_proof_invalid', 403, (id) => proofFor(id, 'another token')],
    [
      'gate.svc_proof_invalid',
      403,
      (id, token) => proofFor(id, token, { handOff: { challenge_answered: false } }),
    ],
    [
      'gate.svc_proof_invalid',
      403,
      (id, token) => proofFor(id, token, { handOff: { input_observed: false } }),
    ],
    ['gate.bot_detected', 403, (id, token) => proofFor(id, token, { verdict: 'bot' })],
  ]
  test.each(proofs)(
    '%s; the session stays pending and its token good',
    async (code, status, sealed) => {
      const signup = await world.signup(owner)
      const { approve_token } = await approving(signup.id)
      const body = { approve_token, sealed_token: sealed(signup.id, approve_token) }
      expect(await post(signup.id, { body })).toMatchObject(refused(status, code))
      const good = { approve_token, sealed_token: proofFor(signup.id, approve_token) }
      expect(await post(signup.id, { body: good })).toMatchObject({ status: 200 })
    },
  )

  test('nobody who re-reads the consent data, who would void the page that a person has open', async () => {
    const { id } = await world.signup(owner)
    const body = await approving(id)
    for (let i = 0; i < 3; i++) await gate.parts.pages.open(id)
    expect(await post(id, { body })).toMatchObject({ status: 200 })
  })

  test('nobody who approves with another token of the page, and one approval wins', async () => {
    const signup = await world.signup(owner)
    const bodies = [await approving(signup.id), await approving(signup.id)]
    const answers = await Promise.all(bodies.map((body) => post(signup.id, { body })))
    expect(answers.map(({ status }) => status)).toContain(200)
    expect(await world.count('GateSessionApprovalStarted', signup.id)).toBe(1)
    expect(world.sentTo(signup.id)).toHaveLength(1)
  })

  test('a proof of another session than the page says', async () => {
    const signup = await world.signup(owner)
    const body = { ...(await approving(signup.id)), session_id: `sid_${'1'.repeat(26)}` }
    expect(await post(signup.id, { body })).toMatchObject(refused(403, 'gate.svc_proof_invalid'))
  })

  test('a fourth attempt from the same address, whatever the token', async () => {
    const signup = await world.signup(owner)
    const ip = freshAddress()
    for (let i = 0; i < 3; i++) expect((await post(signup.id, { ip })).status).toBe(403)
    const body = await approving(signup.id)
    const fourth = await post(signup.id, { body, ip })
    expect(fourth).toMatchObject(refused(429, 'gate.rate_limit'))
    expect(Number(fourth.headers['retry-after'])).toBeGreaterThan(0)
    expect(await post(signup.id, { body })).toMatchObject({ status: 200 })
  })

  test('a session that is over', async () => {
    const [declined, expired] = [await world.signup(owner), await world.signup(owner)]
    const rejection = { gate_session_id: declined.id, reason: 'declined' as const, problem: null }
    await world.happen(
      { type: 'GateSessionRejected', data: { ...rejection, rejected_at: world.now.ms } },
      declined.id,
    )
    world.now.ms += sessionTtlMs
    const [late, later] = [await approving(declined.id), await approving(expired.id)]
    expect(await post(declined.id, { body: late })).toMatchObject(
      refused(409, 'gate.session_already_resolved'),
    )
    expect(await post(expired.id, { body: later })).toMatchObject(
      refused(410, 'gate.session_expired'),
    )
  })

  test('another page, and anything that is no such request', async () => {
    const signup = await world.signup(owner)
    const body = await approving(signup.id)
    for (const origin of ['https://evil.example', 'null', 'http://tidegate.example'])
      expect(await post(signup.id, { body, headers: { origin } })).toMatchObject(
        refused(403, 'auth.origin_not_allowed'),
      )
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    expect(await post(signup.id, { body: 'approve_token=x', headers: form })).toMatchObject({
      status: 415,
    })
    expect(await post(signup.id, { body: '{' })).toMatchObject({ status: 400 })
    for (const wrong of [[], { ...body, more: 1 }, { approve_token: 1 }]) {
      const answer = await post(signup.id, { body: wrong })
      expect(answer).toMatchObject(refused(422, 'gate.validation_failed'))
      expect(answer.body.error.details.parameter_set).toBe('gate_session_approve')
    }
    expect(await world.find(signup.id)).toMatchObject({
      status: 'pending',
      approval_started_at: null,
    })
  })
})
