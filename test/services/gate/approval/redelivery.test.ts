import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { lookupHashes } from '../../../../infra/crypto/api-keys.ts'
import { tokenHashes } from '../../../../infra/crypto/tokens.ts'
import { openEnvelope } from '../../../../infra/wire/delivery-envelope.ts'
import { findAgentToken } from '../../../../projections/gate/queries.ts'
import { findKeyByLookupHash } from '../../../../projections/organizations/queries.ts'
import type { ApprovalDeps } from '../../../../services/gate/approval/account-request.ts'
import { startApprovals } from '../../../../services/gate/approval/approvals.ts'
import { concludeApproval } from '../../../../services/gate/approval/conclude.ts'
import { replaceDelivery } from '../../../../services/gate/approval/redelivery.ts'
import type { Approvals } from '../../../../services/gate/context.ts'
import { gateRoutes } from '../../../../services/gate/routes.ts'
import { deliveryTtlMs } from '../../../../services/gate/sessions.ts'
import { endOverdue } from '../../../../services/gate/time-outs.ts'
import { eventually } from '../../../support/eventually.ts'
import { freshAddress } from '../../../support/gate-flow.ts'
import type { GateOwner } from '../../../support/gate-world.ts'
import { createServiceApp } from '../../../support/service-app.ts'
import { dyingAt } from './crashes.ts'
import {
  type ApprovalWorld,
  account,
  openApprovalWorld,
  responding,
  type Signup,
  sentBy,
  timeOut,
} from './world.ts'

let world: ApprovalWorld
let approvals: Approvals
let app: FastifyInstance
let owner: GateOwner

beforeAll(async () => {
  world = await openApprovalWorld()
  owner = await world.owner()
  // Nobody finishes what a test has started.
  approvals = startApprovals({ ...world.parts, pollIntervalMs: 1_000_000 })
  const { app: made, context } = await createServiceApp(world, { trustedProxies: ['127.0.0.1'] })
  app = made
  const parts = { ...world.parts, approvals }
  await gateRoutes(app, { ...context, gate: { parts, stop: approvals.stop } })
})
afterAll(async () => {
  await app.close()
  await approvals.stop()
  await world.close()
})
beforeEach(() => {
  world.script.answer = account
  world.waits.length = 0
})

const deps = (changes: Partial<ApprovalDeps> = {}) => world.approvalDeps(changes)

const signal = new AbortController().signal
const replace = ({ id: gateSessionId }: Signup, given = deps()) =>
  replaceDelivery(given, { gateSessionId, signal })

/** A signup whose credentials wait. */
async function approved(...args: Parameters<ApprovalWorld['started']>): Promise<Signup> {
  const signup = await world.started(...args)
  await concludeApproval(deps(), { gateSessionId: signup.id, signal })
  return signup
}

async function ask(method: 'GET' | 'POST', { id, pollToken }: Signup, path = '', payload?: object) {
  const response = await app.inject({
    method,
    url: `/v1/gate/sessions/${id}${path}`,
    headers: { authorization: `Bearer ${pollToken}`, 'x-forwarded-for': freshAddress() },
    ...(payload && { payload }),
  })
  return { status: response.statusCode, body: response.json() }
}

const poll = (signup: Signup) => ask('GET', signup)
const acknowledge = (signup: Signup, ack_token = '') => ask('POST', signup, '/ack', { ack_token })

/** As agents do: an answer that says to come again, on a busy machine, is followed by another poll. */
async function pickedUp(signup: Signup) {
  const { status, body } = await eventually(async () => {
    const answer = await poll(signup)
    expect(answer.status).not.toBe(503)
    return answer
  })
  expect([status, body.data?.status]).toEqual([200, 'approved'])
  const open = (envelope: Parameters<typeof openEnvelope>[0]) =>
    openEnvelope(envelope, signup.keys.privateKey)
  const { integrator, gate: own } = body.data.delivery_bundle
  const { outputs, ack_token: ackToken } = open(own)
  return {
    outputs: open(integrator).outputs,
    agentToken: Object.values(outputs)[0] ?? '',
    ackToken,
  }
}

const tokenRow = (token: string) =>
  findAgentToken(world.pool, tokenHashes(world.parts.keyring, token))

describe('once Postgres has lost the keys', () => {
  test('a poll has the service asked again under the same id, and the agent picks up what works', async () => {
    const signup = await approved(owner)
    const before = await pickedUp(signup)
    const session = await world.find(signup.id)
    await world.loseKeys()
    const after = await pickedUp(signup)
    expect(after.outputs).toEqual(before.outputs)
    const sent = world.sentTo(signup.id).map(sentBy)
    expect(sent).toHaveLength(2)
    expect(sent[1]).toEqual(sent[0])
    expect(await world.find(signup.id)).toMatchObject({
      status: 'approved',
      delivery: 'waiting',
      gate_account_id: session.gate_account_id,
      delivery_expires_at: session.delivery_expires_at,
    })
    expect(await tokenRow(before.agentToken)).toBeUndefined()
    expect(await tokenRow(after.agentToken)).toMatchObject({
      status: 'active',
      gate_account_id: session.gate_account_id,
    })
    expect((await acknowledge(signup, before.ackToken)).body.error.code).toBe(
      'gate.delivery_ack_invalid',
    )
    expect((await acknowledge(signup, after.ackToken)).status).toBe(200)
    expect((await poll(signup)).body.error).toMatchObject({
      code: 'gate.delivery_consumed',
      message: 'The credentials were delivered already.',
    })
    expect(await world.count('GateDeliveryReplaced', signup.id)).toBe(1)
  })

  test('what the agent has stored it can acknowledge, and nobody is asked', async () => {
    const signup = await approved(owner)
    const { ackToken } = await pickedUp(signup)
    await world.loseKeys()
    expect((await acknowledge(signup, ackToken)).status).toBe(200)
    await replace(signup)
    expect(world.sentTo(signup.id)).toHaveLength(1)
  })

  test('a service that does not answer is asked on its schedule, and again by a later poll, until the day is over', async () => {
    const signup = await approved(owner)
    await world.loseKeys()
    world.script.answer = responding(403)
    world.waits.length = 0
    await replace(signup)
    expect(world.waits.slice(0, 5)).toEqual([0, 1000, 2000, 4000, 8000])
    // A quarter of an hour.
    expect(world.waits.length).toBeLessThan(25)
    const asked = world.sentTo(signup.id).length
    expect((await world.find(signup.id)).status).toBe('approved')
    world.script.answer = timeOut
    await replace(signup)
    expect(world.sentTo(signup.id).length).toBeGreaterThan(asked)
    world.script.answer = account
    await replace(signup)
    await pickedUp(signup)

    await world.loseKeys()
    world.now.ms += deliveryTtlMs
    const { status, body } = await poll(signup)
    expect([status, body.error.code]).toEqual([410, 'gate.delivery_consumed'])
    expect(body.error.message).toContain('lost in a failure')
    await endOverdue(world.parts)
    expect((await poll(signup)).body.error.message).toBe(body.error.message)
  })

  test('a poll does not wait for a service that takes its time: 503 says when to ask again', async () => {
    const signup = await approved(owner)
    await world.loseKeys()
    const { promise, resolve: letGo } = Promise.withResolvers<void>()
    world.script.answer = async (sent) => {
      await promise
      return account(sent)
    }
    const { status, body } = await poll(signup)
    expect([status, body.error.code, body.error.retryable]).toEqual([
      503,
      'service.unavailable',
      true,
    ])
    letGo()
    await pickedUp(signup)
    expect(world.sentTo(signup.id)).toHaveLength(2)
  })

  test('two processes at once replace it once', async () => {
    const signup = await approved(owner)
    await world.loseKeys()
    await Promise.all([replace(signup), replace(signup)])
    expect(await world.count('GateDeliveryReplaced', signup.id)).toBe(1)
    await pickedUp(signup)
  })

  test('in the middle of an approval, it goes on', async () => {
    const signup = await world.started(owner)
    const { decideAs } = world.parts
    const losing: ApprovalDeps['decideAs'] = (actor) => async (request) => {
      const events = await decideAs(actor)(request)
      await world.loseKeys()
      return events
    }
    await concludeApproval(deps({ decideAs: losing }), { gateSessionId: signup.id, signal })
    await pickedUp(signup)
  })

  test('a token that the service has revoked stays revoked', async () => {
    const signup = await approved(owner)
    const { agentToken } = await pickedUp(signup)
    const token = await tokenRow(agentToken)
    if (!token) throw new Error('there is no agent token')
    const { gate_session_id, gate_account_id } = token
    const revoked = { gate_session_id, gate_account_id, revoked_at: world.now.ms }
    await world.happen({ type: 'AgentTokenRevoked', data: revoked }, signup.id)
    await world.loseKeys()
    expect(await tokenRow((await pickedUp(signup)).agentToken)).toMatchObject({ status: 'revoked' })
  })

  describe('the built-in service', () => {
    const isKeyActive = async (key = '') => {
      const found = await findKeyByLookupHash(world.pool, lookupHashes(world.parts.keyring, key))
      return found?.status === 'active'
    }

    test('gives out new keys of the same organization, and those before work no more', async () => {
      const signup = await approved()
      const { outputs: before } = await pickedUp(signup)
      await world.loseKeys()
      const { outputs: after } = await pickedUp(signup)
      const { TIDEGATE_ORGANIZATION_ID: id, ...keys } = after
      expect(id).toBe(before.TIDEGATE_ORGANIZATION_ID)
      expect(Object.values(keys).filter((key) => Object.values(before).includes(key))).toEqual([])
      expect(await Promise.all(Object.values(keys).map(isKeyActive))).toEqual([
        true,
        true,
        true,
        true,
      ])
      expect(await isKeyActive(before.TIDEGATE_SECRET_KEY)).toBe(false)
    })

    test('wherever a process dies, what is delivered in the end works', async () => {
      const whole = dyingAt(deps(), undefined)
      const first = await approved()
      await world.loseKeys()
      await replace(first, whole.deps)
      expect(whole.steps()).toBeGreaterThan(3)
      for (let step = 1; step <= whole.steps(); step++) {
        for (const effect of [false, true]) {
          const signup = await approved()
          await world.loseKeys()
          await replace(signup, dyingAt(deps(), { step, effect }).deps).catch(() => {})
          const { outputs } = await pickedUp(signup)
          expect(await isKeyActive(outputs.TIDEGATE_SECRET_KEY)).toBe(true)
        }
      }
    }, 60_000)
  })
})

test('what can be opened is left alone, as is what nobody approved', async () => {
  const [waiting, open] = [await approved(owner), await world.signup(owner)]
  await replace(waiting)
  await replace(open)
  expect(world.sentTo(waiting.id)).toHaveLength(1)
  expect(world.sentTo(open.id)).toEqual([])
})
