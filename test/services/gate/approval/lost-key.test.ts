import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { tokenHashes } from '../../../../infra/crypto/tokens.ts'
import { findAgentToken } from '../../../../projections/gate/queries.ts'
import type { ApprovalDeps } from '../../../../services/gate/approval/account-request.ts'
import { startApprovals } from '../../../../services/gate/approval/approvals.ts'
import { concludeApproval } from '../../../../services/gate/approval/conclude.ts'
import type { Approvals } from '../../../../services/gate/context.ts'
import { gateRoutes } from '../../../../services/gate/routes.ts'
import { deliveryTtlMs } from '../../../../services/gate/sessions.ts'
import { endOverdue } from '../../../../services/gate/time-outs.ts'
import { createVault } from '../../../../services/gate/vault.ts'
import { freshAddress } from '../../../support/gate-flow.ts'
import type { GateOwner } from '../../../support/gate-world.ts'
import { createServiceApp } from '../../../support/service-app.ts'
import { type ApprovalWorld, openApprovalWorld, type Signup } from './world.ts'

let world: ApprovalWorld
let approvals: Approvals
let owner: GateOwner
/** A server as all others, and one that does not know the master key of the others. */
let app: FastifyInstance
let stranger: FastifyInstance

beforeAll(async () => {
  world = await openApprovalWorld()
  owner = await world.owner()
  // Nobody finishes what a test has started.
  approvals = startApprovals({ ...world.parts, pollIntervalMs: 1_000_000 })
  app = await serve(world.parts)
  const keyring = createKeyring(randomBytes(32).toString('base64'))
  stranger = await serve({ ...world.parts, vault: createVault({ ...world.parts, keyring }) })
})
afterAll(async () => {
  await Promise.all([app.close(), stranger.close()])
  await approvals.stop()
  await world.close()
})

async function serve(parts: ApprovalWorld['parts']): Promise<FastifyInstance> {
  const { app: made, context } = await createServiceApp(world, { trustedProxies: ['127.0.0.1'] })
  const gate = { parts: { ...parts, approvals }, stop: approvals.stop }
  await gateRoutes(made, { ...context, gate })
  return made
}

/** A signup whose credentials wait. */
async function approved(changes: Partial<ApprovalDeps> = {}): Promise<Signup> {
  const signup = await world.started(owner)
  const { signal } = new AbortController()
  await concludeApproval(world.approvalDeps(changes), { gateSessionId: signup.id, signal })
  return signup
}

async function ask(signup: Signup, { ackToken, on = app }: { ackToken?: string; on?: typeof app }) {
  const response = await on.inject({
    method: ackToken === undefined ? 'GET' : 'POST',
    url: `/v1/gate/sessions/${signup.id}${ackToken === undefined ? '' : '/ack'}`,
    headers: { authorization: `Bearer ${signup.pollToken}`, 'x-forwarded-for': freshAddress() },
    ...(ackToken !== undefined && { payload: { ack_token: ackToken } }),
  })
  const { error, data } = response.json()
  return { status: response.statusCode, code: error?.code, message: error?.message, data }
}

const gone = {
  status: 410,
  code: 'gate.delivery_consumed',
  message: expect.stringContaining('their key is gone'),
}

test('a poll without the key is 410 at once, and the service is not asked again', async () => {
  const signup = await approved()
  const { gate } = await world.delivered(signup)
  const [agentToken = ''] = Object.values(gate.outputs)
  await world.loseKeys()
  expect(await ask(signup, {})).toMatchObject(gone)
  expect(await ask(signup, {})).toMatchObject(gone)
  expect(world.sentTo(signup.id)).toHaveLength(1)
  // The account stays, and whoever has its credentials can use them.
  expect(await world.find(signup.id)).toMatchObject({ status: 'approved', delivery: 'waiting' })
  const hashes = tokenHashes(world.parts.keyring, agentToken)
  expect(await findAgentToken(world.pool, hashes)).toMatchObject({ status: 'active' })
  world.now.ms += deliveryTtlMs
  await endOverdue(world.parts)
  expect(await ask(signup, {})).toMatchObject(gone)
})

test('what the agent has stored it can acknowledge without the key', async () => {
  const signup = await approved()
  const { gate } = await world.delivered(signup)
  await world.loseKeys()
  expect(await ask(signup, { ackToken: gate.ack_token ?? '' })).toMatchObject({ status: 200 })
  expect(await ask(signup, {})).toMatchObject({ ...gone, message: expect.stringContaining('were') })
})

test('a key that is lost before the approval is written is gone, too', async () => {
  const { vault } = world.parts
  const make: typeof vault.make = async (id) => {
    const key = await vault.make(id)
    await world.loseKeys()
    return key
  }
  expect(await ask(await approved({ vault: { ...vault, make } }), {})).toMatchObject(gone)
})

test('a server that does not know the master key answers 503, and another the credentials', async () => {
  const signup = await approved()
  expect(await ask(signup, { on: stranger })).toMatchObject({
    status: 503,
    code: 'service.unavailable',
  })
  expect(await ask(signup, {})).toMatchObject({ status: 200, data: { status: 'approved' } })
})
