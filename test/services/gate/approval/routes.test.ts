import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { generateToken } from '../../../../infra/crypto/tokens.ts'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { changeService, disableService } from '../../../../services/gate/registry/commands.ts'
import { codeTtlMs } from '../../../../services/gate/sessions.ts'
import { answeringService, freshAddress } from '../../../support/gate-flow.ts'
import type { Send } from '../../../support/send.ts'
import { signupOpened } from '../fixtures.ts'
import { responding, useGateApi } from '../gate-api.ts'

const gate = await useGateApi()
const owner = await gate.owner()
beforeEach(() => {
  gate.script.answer = answeringService
})

const open = ({ serviceId } = owner) => gate.flow.open(serviceId)
const approve = (id: string, body: unknown, more: Omit<Send, 'url'> = {}) =>
  gate.post(`sessions/${id}/approve`, body, more)
const [inProgress, resolved] = [
  '409 gate.approval_in_progress',
  '409 gate.session_already_resolved',
]

async function keysStored(): Promise<number> {
  const { rows } = await gate.pool.query(
    'select count(*)::int as count from tidegate.idempotency_keys',
  )
  return rows[0].count
}

describe('a signup', () => {
  test('is in progress until its service responds, and the page can ask repeatedly', async () => {
    const { asked, letGo } = gate.holdAnswers()
    const { id } = await open()
    const ip = freshAddress()
    const body = await gate.flow.approval(id)
    const first = await approve(id, body, { ip })
    await asked
    expect([first.outcome, first.headers['retry-after']]).toEqual([inProgress, '1'])
    const again = Array.from({ length: 8 }, () => approve(id, body, { ip }))
    // After a reload, the page gets the outcome with its new token and without a proof.
    again.push(approve(id, { approve_token: await gate.flow.approveToken(id) }, { ip }))
    letGo()
    expect(new Set((await Promise.all(again)).map(({ outcome }) => outcome))).toEqual(
      new Set(['200']),
    )
    expect(gate.sentTo(id)).toHaveLength(1)
    expect(await gate.session(id)).toMatchObject({ verdict: 'human', risk_score: 12 })
  })

  test('is rejected when its service refuses, and the approving page gets that outcome again', async () => {
    gate.script.answer = responding(422)
    const { id } = await open()
    const body = await gate.flow.approval(id)
    for (const _time of [1, 2]) {
      const { outcome, error } = await approve(id, body)
      expect(outcome).toBe(resolved)
      expect(error.message).toMatch(/service could not provide/)
    }
  })

  test('binds an Idempotency-Key to its body, and a replay is not another attempt', async () => {
    const { id } = await open()
    const body = await gate.flow.approval(id)
    const from = { ip: freshAddress(), headers: { 'idempotency-key': 'click' } }
    const first = await approve(id, body, from)
    for (let i = 0; i < 4; i++) expect((await approve(id, body, from)).body).toEqual(first.body)
    const changed = await approve(id, {}, from)
    expect(changed).toMatchObject({
      status: 422,
      error: { details: { header_name: 'Idempotency-Key' } },
    })
  })

  test('stores nothing for requests for the outcome or above the limit of attempts', async () => {
    const [approved, refused] = [await open(), await open()]
    const body = await gate.flow.approval(approved.id)
    await approve(approved.id, body)
    const ip = freshAddress()
    for (let i = 0; i < 3; i++) await approve(refused.id, {}, { ip })
    const before = await keysStored()
    const headers = { 'idempotency-key': 'fresh' }
    expect((await approve(approved.id, body, { headers })).outcome).toBe('200')
    expect((await approve(refused.id, {}, { ip, headers })).outcome).toBe('429 gate.rate_limit')
    expect(await keysStored()).toBe(before)
  })

  test('is unchanged if its service is not readable', async () => {
    const id = gate.newId('gate')
    const event = signupOpened({
      gate_session_id: id,
      service_id: 'not-yet-readable',
      opened_at: gate.now.ms,
    })
    await gate.append(gateProjection, owner, event)
    const approve_token = await gate.parts.pages.issueApproveToken(id)
    const body = { approve_token, sealed_token: await gate.flow.proof(id, approve_token) }
    expect((await approve(id, body)).outcome).toBe('503 service.unavailable')
    expect(await gate.session(id)).toMatchObject({ status: 'pending', approval_started_at: null })
  })

  test('can be approved although its service was disabled', async () => {
    const disabled = await gate.owner()
    const { id } = await open(disabled)
    await disableService(gate.deps, disabled)
    expect((await approve(id, await gate.flow.approval(id))).outcome).toBe('200')
  })

  test('accepts any token of its own page, and no other', async () => {
    const [{ id }, other] = [await open(), await open()]
    const body = await gate.flow.approval(id)
    const bad = [undefined, '', 'x', generateToken('gtapr', randomBytes)]
    for (const approve_token of [...bad, await gate.flow.approveToken(other.id)])
      expect((await approve(id, { ...body, approve_token })).outcome).toBe(
        '403 gate.approve_token_invalid',
      )
    // Reading the consent data again does not invalidate an open page.
    for (let i = 0; i < 3; i++) await gate.flow.approveToken(id)
    expect((await approve(id, body)).outcome).toBe('200')
  })

  test('can still be approved after an invalid proof', async () => {
    const { id } = await open()
    const body = await gate.flow.approval(id)
    const changed = async (changes: object) => (await approve(id, { ...body, ...changes })).outcome
    expect(await changed({ sealed_token: '' })).toBe('422 gate.svc_proof_required')
    expect(await changed({ session_id: `sid_${'1'.repeat(26)}` })).toBe(
      '403 gate.svc_proof_invalid',
    )
    const bot = await gate.flow.proof(id, body.approve_token, { verdict: 'bot' })
    expect(await changed({ sealed_token: bot })).toBe('403 gate.bot_detected')
    expect(await changed({})).toBe('200')
  })
})

describe('a login', () => {
  async function login(fields = {}) {
    const to = await gate.owner({ fields })
    const { agentToken = '' } = await gate.flow.signUp(to.serviceId)
    return { to, agentToken, id: await gate.flow.openLogin(to.serviceId, agentToken) }
  }

  test('returns its code again only to the page that approved, and only until it expires', async () => {
    const { id } = await login()
    const [body, other] = [await gate.flow.approval(id), await gate.flow.approval(id)]
    const first = await approve(id, body)
    expect(first.data.redirect_url).toBe(`https://acme.example/auth/gate?code=${first.data.code}`)
    const ip = freshAddress()
    for (let i = 0; i < 5; i++) expect((await approve(id, body, { ip })).data).toEqual(first.data)
    expect(await gate.count('LoginSessionApproved', id)).toBe(1)
    expect((await approve(id, other)).outcome).toBe(resolved)
    gate.now.ms += codeTtlMs
    expect((await approve(id, body)).outcome).toBe('410 gate.session_expired')
  })

  test('does not return a consumed code', async () => {
    const { id, to } = await login()
    const body = await gate.flow.approval(id)
    const { code } = (await approve(id, body)).data
    const used = await gate.post('login-sessions/consume', { code }, { key: to.secretKey })
    expect([used.outcome, (await approve(id, body)).outcome]).toEqual(['200', resolved])
  })

  test('can still be approved after a proof without a person', async () => {
    const { id } = await login()
    for (const handOff of [
      { challenge_answered: false },
      { input_observed: false },
      { binding: null },
    ])
      expect((await approve(id, await gate.flow.approval(id, { handOff }))).outcome).toBe(
        '403 gate.svc_proof_invalid',
      )
    expect((await approve(id, await gate.flow.approval(id))).outcome).toBe('200')
  })

  test('redirects to the dashboard that the page showed, even if the service has changed it', async () => {
    const shown = 'https://acme.example/auth/gate'
    const { id, to } = await login({ dashboard_login_url: shown })
    const move = (dashboard_login_url: string | null) =>
      changeService(gate.deps, { ...to, dashboard_login_url })
    await move('https://evil.example/auth')
    const consent = await gate.ask(`sessions/${id}/consent`)
    expect(consent.data.service.dashboard_login_url).toBe(shown)
    const body = await gate.flow.approval(id)
    const { data } = await approve(id, body)
    expect(data.redirect_url).toBe(`${shown}?code=${data.code}`)
    await move(null)
    expect((await approve(id, body)).data).toEqual({ ...data, redirect_url: null })
  })

  test('throws if its code would be useless, and can be approved later', async () => {
    const { id, to, agentToken } = await login()
    const body = await gate.flow.approval(id)
    await gate.setStatus(to.organizationId, 'suspended')
    expect((await approve(id, body)).outcome).toBe('404 request.not_found')
    expect(await gate.session(id)).toMatchObject({ status: 'pending', code_hash: null })
    await gate.setStatus(to.organizationId, 'active')
    await gate.post('agent-tokens/revoke', { agent_token: agentToken }, { key: to.secretKey })
    expect((await approve(id, body)).outcome).toBe('410 gate.session_expired')
    expect(await gate.count('LoginSessionApproved', id)).toBe(0)
  })
})
