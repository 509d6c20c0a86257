import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { DecideAs } from '../../../infra/event-store/decide.ts'
import { asId, type GateSessionId, randomId } from '../../../infra/ids.ts'
import { transaction, tryLock } from '../../../infra/postgres/pool.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import { decideLoginApproval } from '../../../services/gate/login/decide.ts'
import {
  codeTtlMs,
  deliveryTtlMs,
  type Proof,
  sessionStream,
  sessionTtlMs,
} from '../../../services/gate/sessions.ts'
import { reloadMs } from '../../../services/gate/signup/decide.ts'
import { endOverdue, purgeGate, runTimeOuts } from '../../../services/gate/time-outs.ts'
import { eventually } from '../../support/eventually.ts'
import { type Signups, startSignups } from './signup/signup-app.ts'

let gate: Signups
beforeAll(async () => {
  gate = await startSignups()
})
afterAll(() => gate?.stop())

const hour = 60 * 60 * 1000

/** All that is left of earlier tests has ended. */
beforeEach(async () => {
  for (const id of await startedApprovals()) await gate.fail(id)
  gate.now.ms += 3 * deliveryTtlMs
  while ((await endOverdue(gate.parts)) > 0);
  while ((await purgeGate(gate.parts)) > 0);
})

async function startedApprovals(): Promise<GateSessionId[]> {
  const { rows } = await gate.pool.query<{ id: string }>(
    `select gate_session_id as id from read.gate_sessions
     where status = 'pending' and approval_started_at is not null`,
  )
  return rows.map(({ id }) => asId('gate', id))
}

/** As if all pages had been closed so much earlier. */
const agePages = (ms: number) =>
  gate.pool.query('update tidegate.gate_pages set closed_at = closed_at - $1', [ms])

async function oneOfEach() {
  const [delivery, code, session] = [await gate.open(), await gate.openLogin(), await gate.open()]
  await gate.approve(delivery.id)
  await approveIt(code)
  return { delivery: delivery.id, code, session: session.id }
}

async function approveIt(id: GateSessionId): Promise<void> {
  const proof: Proof = { verdict: 'human', riskScore: 1, sessionId: 'sid_1', decisionId: 'evt_1' }
  const hashes = { approveTokenHashes: ['x'] satisfies [string], codeHash: id }
  await gate.deps.decide({
    ...sessionStream(id),
    load: (tx) => findGateSession(tx, id),
    decide: (session) => decideLoginApproval(session, { ...hashes, proof, now: gate.now.ms }),
  })
}

describe('what is past its time ends', () => {
  test('sessions, but for those that are being approved', async () => {
    const [waiting, started, login] = [await gate.open(), await gate.open(), await gate.openLogin()]
    await gate.start(started.id)
    gate.now.ms += sessionTtlMs - 1
    expect(await endOverdue(gate.parts)).toBe(0)
    gate.now.ms += 1
    expect(await endOverdue(gate.parts)).toBe(2)
    expect(await gate.session(waiting.id)).toMatchObject({
      status: 'expired',
      resolved_at: gate.now.ms,
    })
    expect((await gate.session(login))?.status).toBe('expired')
    expect((await gate.session(started.id))?.status).toBe('pending')
    expect(await endOverdue(gate.parts)).toBe(0)
  })

  test('deliveries, with the only key to them', async () => {
    const { id } = await gate.open()
    await gate.approve(id)
    gate.now.ms += deliveryTtlMs
    expect(await endOverdue(gate.parts)).toBe(1)
    expect(await gate.session(id)).toMatchObject({
      status: 'approved',
      delivery: 'expired',
      delivery_sealed: null,
    })
    expect(await gate.parts.vault.find(id)).toBeUndefined()
  })

  test('login codes', async () => {
    const id = await gate.openLogin()
    await approveIt(id)
    gate.now.ms += codeTtlMs
    expect(await endOverdue(gate.parts)).toBe(1)
    expect(await gate.session(id)).toMatchObject({ status: 'approved', code: 'expired' })
  })

  test('sessions whose page was closed and not opened again', async () => {
    const [closed, reloaded, started] = [await gate.open(), await gate.open(), await gate.open()]
    await gate.start(started.id)
    for (const { id } of [closed, reloaded, started]) {
      await gate.parts.pages.open(id)
      await gate.parts.pages.close(id)
    }
    // Clocks of processes do not matter here.
    gate.now.ms += 10 * reloadMs
    await agePages(-hour)
    expect(await endOverdue(gate.parts)).toBe(0)
    await agePages(hour + reloadMs)
    await gate.parts.pages.open(reloaded.id)
    expect(await endOverdue(gate.parts)).toBe(1)
    expect(await gate.session(closed.id)).toMatchObject({ status: 'rejected', rejection: 'closed' })
    expect((await gate.session(reloaded.id))?.status).toBe('pending')
    expect((await gate.session(started.id))?.status).toBe('pending')
  })

  test('not twice where two look at once, and what fails keeps nothing else from it', async () => {
    const [broken, fine] = [await gate.open(), await gate.open()]
    gate.now.ms += sessionTtlMs
    const decideAs: DecideAs = (actor) => async (request) => {
      if (request.key === broken.id) throw new Error('the log is away')
      return gate.parts.decideAs(actor)(request)
    }
    await expect(endOverdue({ ...gate.parts, decideAs })).rejects.toThrow('the log is away')
    expect((await gate.session(fine.id))?.status).toBe('expired')
    await transaction(gate.pool, async (tx) => {
      await tryLock(tx, 'gate-time-outs-sessions')
      expect(await endOverdue(gate.parts)).toBe(0)
    })
    expect(await endOverdue(gate.parts)).toBe(1)
  })

  test('even where one of each kind cannot be', async () => {
    const broken = await oneOfEach()
    const fine = await oneOfEach()
    gate.now.ms += deliveryTtlMs
    const decideAs: DecideAs = (actor) => async (request) => {
      if (Object.values<string>(broken).includes(request.key))
        throw new Error('its partition stands still')
      return gate.parts.decideAs(actor)(request)
    }
    await expect(endOverdue({ ...gate.parts, decideAs })).rejects.toThrow(
      'its partition stands still',
    )
    expect(await gate.session(fine.delivery)).toMatchObject({ delivery: 'expired' })
    expect(await gate.session(fine.code)).toMatchObject({ code: 'expired' })
    expect(await gate.session(fine.session)).toMatchObject({ status: 'expired' })
    expect(await endOverdue(gate.parts)).toBe(3)
  })

  test('by the scheduler, which looks again and again', async () => {
    const scheduler = runTimeOuts({
      ...gate.parts,
      logger: gate.deps.logger,
      timeOutsMs: 20,
      purgeMs: 20,
    })
    try {
      const { id } = await gate.open()
      await gate.approve(id)
      gate.now.ms += deliveryTtlMs
      await eventually(async () => expect((await gate.session(id))?.delivery).toBe('expired'))
      gate.now.ms += 2 * hour
      await eventually(async () => expect(await rows()).toMatchObject({ gate_pages: [] }))
    } finally {
      await scheduler.stop()
    }
  })
})

/** Of which sessions there are rows. */
async function rows(): Promise<Record<string, string[]>> {
  const tables = ['gate_vault', 'gate_pages', 'gate_approve_tokens', 'gate_leases']
  const found = tables.map(async (table) => {
    const { rows } = await gate.pool.query<{ id: string }>(
      `select gate_session_id as id from tidegate.${table} order by 1`,
    )
    return [table, rows.map(({ id }) => id)] as const
  })
  return Object.fromEntries(await Promise.all(found))
}

describe('what is of no use any more is deleted', () => {
  test('keys of what has ended or never came to anything, and no other', async () => {
    const [acknowledged, delivering, started, waiting] = [
      await gate.open(),
      await gate.open(),
      await gate.open(),
      await gate.open(),
    ]
    const ack_token = await gate.approve(acknowledged.id)
    await gate.approve(delivering.id)
    await gate.start(started.id)
    await gate.parts.vault.make(waiting.id)
    const { id, poll_token: token } = acknowledged
    const ack = { method: 'POST', url: `/${id}/ack`, key: token, body: { ack_token } } as const
    // As when the process dies between the event and the deletion.
    const { rows: kept } = await gate.pool.query(
      'select * from tidegate.gate_vault where gate_session_id = $1',
      [id],
    )
    expect((await gate.send(ack)).status).toBe(200)
    await gate.pool.query(
      'insert into tidegate.gate_vault values ($1, $2, $3)',
      Object.values(kept[0]),
    )
    const rest = [delivering.id, started.id, waiting.id].toSorted()
    await purgeGate(gate.parts)
    expect((await rows()).gate_vault).toEqual(rest)
    gate.now.ms += 36 * hour + 1
    await purgeGate(gate.parts)
    // Nobody looked whether these have ended, and only then their keys may go.
    expect((await rows()).gate_vault).toEqual([delivering.id, started.id].toSorted())
    await endOverdue(gate.parts)
    expect((await rows()).gate_vault).toEqual([started.id])
  })

  test('pages of sessions that are resolved, an hour later', async () => {
    const [declined, waiting] = [await gate.open(), await gate.open()]
    for (const { id } of [declined, waiting]) await gate.parts.pages.open(id)
    await gate.send({ method: 'POST', url: `/${declined.id}/cancel` })
    await purgeGate(gate.parts)
    expect((await rows()).gate_pages).toEqual([declined.id, waiting.id].toSorted())
    gate.now.ms += hour + 1
    await purgeGate(gate.parts)
    expect((await rows()).gate_pages).toEqual([waiting.id])
  })

  test('approve tokens, an hour after they were handed out', async () => {
    const { id } = await gate.open()
    await gate.parts.pages.open(id)
    gate.now.ms += hour + 1
    await gate.parts.pages.open(id)
    await purgeGate(gate.parts)
    expect((await rows()).gate_approve_tokens).toEqual([id])
  })

  test('leases that ran out and limits whose time is over', async () => {
    const now = Date.now()
    const [old, held] = [randomId('gate', gate.deps.random), randomId('gate', gate.deps.random)]
    await gate.pool.query(`insert into tidegate.gate_leases values ($1, 'x', $3), ($2, 'x', $4)`, [
      old,
      held,
      now - 2 * hour,
      now + hour,
    ])
    await gate.pool.query(
      `insert into tidegate.gate_limits values ('old', 1, $1), ('new', 1, $2)`,
      [now - 1, now + hour],
    )
    await purgeGate(gate.parts)
    expect((await rows()).gate_leases).toEqual([held])
    const { rows: limits } = await gate.pool.query(
      `select key from tidegate.gate_limits where key in ('old', 'new')`,
    )
    expect(limits).toEqual([{ key: 'new' }])
  })
})
