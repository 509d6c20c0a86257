import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { DecideAs } from '../../../infra/event-store/decide.ts'
import { type GateSessionId, randomId } from '../../../infra/ids.ts'
import { transaction, tryLock } from '../../../infra/postgres/pool.ts'
import { expireOverdue, purgeGate, runGateExpiry } from '../../../services/gate/expiry.ts'
import { codeTtlMs, deliveryTtlMs, sessionTtlMs } from '../../../services/gate/sessions.ts'
import { declineSession } from '../../../services/gate/signup/commands.ts'
import { reloadMs } from '../../../services/gate/signup/decide.ts'
import { eventually } from '../../support/eventually.ts'
import { useApprovalWorld } from './approval/world.ts'
import { loginOpened, proven } from './fixtures.ts'

const world = await useApprovalWorld()

const hour = 60 * 60 * 1000
const newSession = () => randomId('gate', randomBytes)

/** Ends the sessions of earlier tests. */
beforeEach(async () => {
  world.now.ms += 3 * deliveryTtlMs
  const { rows } = await world.pool.query<{ id: GateSessionId }>(
    `select gate_session_id as id from read.gate_sessions
     where status = 'pending' and approval_started_at is not null`,
  )
  for (const row of rows) await world.conclude(row)
  while ((await expireOverdue(world.parts)) > 0);
  while ((await purgeGate(world.parts)) > 0);
})

const waiting = async () => (await world.signup()).id
const started = async () => (await world.started()).id
/** Creates a signup whose credentials wait for the agent. */
async function delivering(): Promise<GateSessionId> {
  const signup = await world.started()
  await world.conclude(signup)
  return signup.id
}
async function openLogin(): Promise<GateSessionId> {
  const gate_session_id = newSession()
  await world.happen(loginOpened({ gate_session_id, opened_at: world.now.ms }))
  return gate_session_id
}
/** Creates a login with an unused code. */
async function approvedLogin(): Promise<GateSessionId> {
  const gate_session_id = await openLogin()
  const code = { code_hash: gate_session_id, code_expires_at: world.now.ms + codeTtlMs }
  const data = { gate_session_id, ...proven, ...code, approved_at: world.now.ms }
  await world.happen({ type: 'LoginSessionApproved', data })
  return gate_session_id
}

const end = () => expireOverdue(world.parts)
const purge = () => purgeGate(world.parts)
/** Fails decisions about these sessions. */
function failing(...ids: GateSessionId[]) {
  const decideAs: DecideAs = (actor) => async (request) => {
    if (ids.some((id) => id === request.key)) throw new Error('its partition stands still')
    return world.parts.decideAs(actor)(request)
  }
  return { ...world.parts, decideAs }
}

describe('expires', () => {
  test('sessions, except those whose approval has started', async () => {
    const [session, approving, login] = [await waiting(), await started(), await openLogin()]
    world.now.ms += sessionTtlMs - 1
    expect(await end()).toBe(0)
    world.now.ms += 1
    expect(await end()).toBe(2)
    expect(await world.find(session)).toMatchObject({
      status: 'expired',
      resolved_at: world.now.ms,
    })
    expect(await world.find(login)).toMatchObject({ status: 'expired' })
    expect(await world.find(approving)).toMatchObject({ status: 'pending' })
    expect(await end()).toBe(0)
  })

  test('deliveries, and deletes their data keys', async () => {
    const id = await delivering()
    world.now.ms += deliveryTtlMs
    expect(await end()).toBe(1)
    expect(await world.find(id)).toMatchObject({
      status: 'approved',
      delivery: 'expired',
      delivery_sealed: null,
    })
    expect(await world.parts.vault.find(id)).toBeUndefined()
  })

  test('login codes', async () => {
    const id = await approvedLogin()
    world.now.ms += codeTtlMs
    expect(await end()).toBe(1)
    expect(await world.find(id)).toMatchObject({ status: 'approved', code: 'expired' })
  })

  test('sessions whose page was closed and not reopened', async () => {
    const [closed, reloaded, approving] = [await waiting(), await waiting(), await started()]
    for (const id of [closed, reloaded, approving]) {
      await world.parts.pages.issueApproveToken(id)
      await world.parts.pages.markClosed(id)
    }
    const agePages = (ms: number) =>
      world.pool.query('update tidegate.gate_pages set closed_at = closed_at - $1', [ms])
    // The clocks of processes do not matter.
    world.now.ms += 10 * reloadMs
    await agePages(-hour)
    expect(await end()).toBe(0)
    await agePages(hour + reloadMs)
    await world.parts.pages.issueApproveToken(reloaded)
    expect(await end()).toBe(1)
    expect(await world.find(closed)).toMatchObject({ status: 'rejected', rejection: 'closed' })
    expect(await world.find(reloaded)).toMatchObject({ status: 'pending' })
    expect(await world.find(approving)).toMatchObject({ status: 'pending' })
  })

  test('each item once if two processes run at the same time', async () => {
    await waiting()
    world.now.ms += sessionTtlMs
    await transaction(world.pool, async (tx) => {
      await tryLock(tx, 'gate-time-outs-sessions')
      expect(await end()).toBe(0)
    })
    expect(await end()).toBe(1)
  })

  test('the others of a kind if one fails', async () => {
    const oneOfEach = async () =>
      [await delivering(), await approvedLogin(), await waiting()] as const
    const [broken, fine] = [await oneOfEach(), await oneOfEach()]
    world.now.ms += deliveryTtlMs
    await expect(expireOverdue(failing(...broken))).rejects.toThrow('its partition stands still')
    expect(await Promise.all(fine.map(world.find))).toMatchObject([
      { delivery: 'expired' },
      { code: 'expired' },
      { status: 'expired' },
    ])
    expect(await end()).toBe(3)
  })

  test('by the scheduler, repeatedly', async () => {
    const scheduler = runGateExpiry({ ...world.parts, sweepMs: 20, purgeMs: 20 })
    onTestFinished(() => scheduler.stop())
    const id = await delivering()
    world.now.ms += deliveryTtlMs
    await eventually(async () =>
      expect(await world.find(id)).toMatchObject({ delivery: 'expired' }),
    )
    world.now.ms += 2 * hour
    await eventually(async () => expect(await rows('pages')).toEqual([]))
  })
})

/** Returns the sessions that have rows in the table. */
async function rows(table: 'vault' | 'pages' | 'approve_tokens' | 'leases'): Promise<string[]> {
  const { rows: found } = await world.pool.query<{ id: string }>(
    `select gate_session_id as id from tidegate.gate_${table} order by 1`,
  )
  return found.map(({ id }) => id)
}

describe('purges', () => {
  test('keys of ended deliveries and unused keys, and no others', async () => {
    const [acknowledged, kept] = [await delivering(), await delivering()]
    const [approving, unused] = [await started(), await waiting()]
    for (const id of [approving, unused]) await world.parts.vault.ensure(id)
    // As if the process died between the event and the deletion.
    const data = { gate_session_id: acknowledged, acknowledgement_id: 'a', acknowledged_at: 1 }
    await world.happen({ type: 'GateDeliveryAcknowledged', data })
    await purge()
    expect(await rows('vault')).toEqual([kept, approving, unused].toSorted())
    world.now.ms += 36 * hour + 1
    await purge()
    // These have not been expired yet, so their keys must stay.
    expect(await rows('vault')).toEqual([kept, approving].toSorted())
    await end()
    expect(await rows('vault')).toEqual([approving])
  })

  test('pages of resolved sessions after an hour', async () => {
    const [declined, open] = [await waiting(), await waiting()]
    for (const id of [declined, open]) await world.parts.pages.issueApproveToken(id)
    await declineSession({ ...world.parts, decide: world.deps.decide }, declined)
    await purge()
    expect(await rows('pages')).toEqual([declined, open].toSorted())
    world.now.ms += hour + 1
    await purge()
    expect(await rows('pages')).toEqual([open])
  })

  test('approve tokens an hour after they were issued', async () => {
    const id = await waiting()
    await world.parts.pages.issueApproveToken(id)
    world.now.ms += hour + 1
    await world.parts.pages.issueApproveToken(id)
    await purge()
    expect(await rows('approve_tokens')).toEqual([id])
  })

  test('expired leases and rate limits', async () => {
    const now = Date.now()
    const [old, held] = [newSession(), newSession()]
    await world.pool.query(`insert into tidegate.gate_leases values ($1, 'x', $3), ($2, 'x', $4)`, [
      old,
      held,
      now - 2 * hour,
      now + hour,
    ])
    await world.pool.query(
      `insert into tidegate.gate_limits values ('old', 1, $1), ('new', 1, $2)`,
      [now - 1, now + hour],
    )
    await purge()
    expect(await rows('leases')).toEqual([held])
    const limits = await world.pool.query('select key from tidegate.gate_limits')
    expect(limits.rows).toEqual([{ key: 'new' }])
  })
})
