import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GateSessionId, randomId } from '../../../../infra/ids.ts'
import type { ErasableSession } from '../../../../projections/gate/queries.ts'
import { eraseAged } from '../../../../services/gate/erasure/retention.ts'
import { day, loginOpened, minute, signedUp } from '../given.ts'
import type { GateOwner } from '../../../support/gate-world.ts'
import { type ApprovalWorld, openApprovalWorld } from '../approval/world.ts'

let world: ApprovalWorld
let owner: GateOwner
beforeAll(async () => {
  world = await openApprovalWorld()
  owner = await world.owner()
})
afterAll(() => world?.close())

const days = 30
const account = () => randomId('gacct', randomBytes)

/** Those that would be erased now. */
async function due(): Promise<Set<string>> {
  const erased: ErasableSession[] = []
  await eraseAged({
    ...world.options,
    retentionMs: days * day,
    eraseSessions: async (_decide, sessions) => void erased.push(...sessions),
  })
  return new Set(erased.map(({ id }) => id))
}

async function ended(): Promise<GateSessionId> {
  const { id } = await world.signup(owner)
  await world.happen(
    { type: 'GateSessionExpired', data: { gate_session_id: id, expired_at: 1 } },
    id,
  )
  return id
}

async function withToken(): Promise<{ id: GateSessionId; accountId: string }> {
  const [id, accountId] = [randomId('gate', randomBytes), account()]
  const of = {
    gate_session_id: id,
    gate_account_id: accountId,
    agent_token_hash: id,
    at: world.now.ms,
  }
  const [opened, approved] = signedUp(owner, of)
  const started = {
    gate_session_id: id,
    gate_account_id: accountId,
    webhook_endpoint_id: null,
    approve_token_hash: 'approve',
    verdict: 'human',
    risk_score: 1,
    proof_session_id: randomId('sid', randomBytes),
    proof_decision_id: randomId('evt', randomBytes),
    started_at: world.now.ms,
  }
  await world.happen(opened, id)
  await world.happen({ type: 'GateSessionApprovalStarted', data: started }, id)
  await world.happen(approved, id)
  await world.happen(
    { type: 'GateDeliveryExpired', data: { gate_session_id: id, expired_at: 1 } },
    id,
  )
  return { id, accountId }
}

test('who asked and approved is known for so many days after the end, and while the agent token works', async () => {
  const closed = await ended()
  const waiting = (await world.signup(owner)).id
  const [working, revoked] = [await withToken(), await withToken()]
  const login = randomId('gate', randomBytes)
  const opened = {
    opened_at: world.now.ms,
    gate_session_id: login,
    gate_account_id: working.accountId,
  }
  await world.happen(loginOpened(opened), login)
  await world.happen(
    { type: 'GateSessionExpired', data: { gate_session_id: login, expired_at: 1 } },
    login,
  )
  const about = { gate_session_id: revoked.id, gate_account_id: revoked.accountId, revoked_at: 1 }
  await world.happen({ type: 'AgentTokenRevoked', data: about }, revoked.id)

  world.now.ms += days * day
  expect(await due()).toEqual(new Set())
  world.now.ms += 16 * minute
  expect(await due()).toEqual(new Set([closed, revoked.id, login]))
  world.now.ms += 90 * day
  expect(await due()).toEqual(new Set([closed, revoked.id, login, working.id]))
  expect((await world.find(waiting)).status).toBe('pending')
})
