import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { type GateSessionId, randomId } from '../../../../infra/ids.ts'
import type { ErasableSession } from '../../../../projections/gate/queries.ts'
import { erasePastRetention } from '../../../../services/gate/erasure/retention.ts'
import { useApprovalWorld } from '../approval/world.ts'
import { day, loginOpened, minute } from '../fixtures.ts'

const world = await useApprovalWorld()
const owner = await world.owner()

const days = 30

/** Returns the sessions that would be erased now. */
async function due(): Promise<Set<string>> {
  const erased: ErasableSession[] = []
  await erasePastRetention({
    ...world.parts,
    retentionMs: days * day,
    eraseSessions: async (_decide, sessions) => void erased.push(...sessions),
  })
  return new Set(erased.map(({ id }) => id))
}

const ended = (gate_session_id: GateSessionId) =>
  world.happen({ type: 'GateSessionExpired', data: { gate_session_id, expired_at: 1 } })

/** Creates a signup with an ended delivery and an agent token. */
async function withToken() {
  const signup = await world.started(owner)
  await world.conclude(signup)
  const about = { gate_session_id: signup.id }
  await world.happen({ type: 'GateDeliveryExpired', data: { ...about, expired_at: 1 } })
  const { id, gate_account_id } = await world.find(signup.id)
  return { id, gate_account_id: gate_account_id ?? '' }
}

test('personal data is kept for the retention after the end, and while the agent token is valid', async () => {
  const [closed, waiting] = [await world.signup(owner), await world.signup(owner)]
  await ended(closed.id)
  const [working, revoked] = [await withToken(), await withToken()]
  const login = randomId('gate', randomBytes)
  const { gate_account_id } = working
  await world.happen(
    loginOpened({ opened_at: world.now.ms, gate_session_id: login, gate_account_id }),
  )
  await ended(login)
  const revocation = { gate_account_id: revoked.gate_account_id, revoked_at: 1 }
  await world.happen({
    type: 'AgentTokenRevoked',
    data: { gate_session_id: revoked.id, ...revocation },
  })

  world.now.ms += days * day
  expect(await due()).toEqual(new Set())
  world.now.ms += 16 * minute
  expect(await due()).toEqual(new Set([closed.id, revoked.id, login]))
  world.now.ms += 90 * day
  expect(await due()).toEqual(new Set([closed.id, revoked.id, login, working.id]))
  expect((await world.find(waiting.id)).status).toBe('pending')
})
