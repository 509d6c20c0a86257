import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  type ApprovalsOptions,
  createApprovalLeases,
  startApprovals,
} from '../../../../services/gate/approval/approvals.ts'
import type { Approvals } from '../../../../services/gate/context.ts'
import { eventually } from '../../../support/eventually.ts'
import { answeringService as account } from '../../../support/gate-flow.ts'
import { responding } from '../gate-api.ts'
import { type Signup, useApprovalWorld } from './world.ts'

const processes: Approvals[] = []

const world = await useApprovalWorld()
const owner = await world.owner()
beforeEach(() => {
  world.script.answer = account
})
afterEach(() => Promise.all(processes.splice(0).map((one) => one.stop())))

/** Simulates another process. By default, it polls only once, at its start. */
function startProcess(changes: Partial<ApprovalsOptions> = {}): Approvals {
  const approvals = startApprovals({ ...world.parts, pollIntervalMs: 1_000_000, ...changes })
  processes.push(approvals)
  return approvals
}

const patience = 20_000

test('an approval without a lease is found and concluded', async () => {
  const signup = await world.started(owner)
  const approvals = startProcess()
  expect(await approvals.waitForOutcome(signup.id, patience)).toMatchObject({ status: 'approved' })
})

test('64 concurrent runs of one approval in two processes request the account once', async () => {
  const both = [startProcess(), startProcess()]
  const { asked, letGo } = world.holdAnswers()
  const signup = await world.started(owner)
  const outcomes = Array.from({ length: 64 }, (_, i) => {
    const approvals = both[i % 2] ?? startProcess()
    approvals.startIfIdle(signup.id)
    return approvals.waitForOutcome(signup.id, patience)
  })
  await asked
  letGo()
  const statuses = (await Promise.all(outcomes)).map((session) => session?.status)
  expect(new Set(statuses)).toEqual(new Set(['approved']))
  expect(world.sentTo(signup.id)).toHaveLength(1)
  expect(await world.count('GateSessionApproved', signup.id)).toBe(1)
})

test('the outcome is pending if the service does not respond within the wait', async () => {
  const approvals = startProcess()
  const { asked, letGo } = world.holdAnswers()
  const signup = await world.started(owner)
  approvals.startIfIdle(signup.id)
  await asked
  expect(await approvals.waitForOutcome(signup.id, 0)).toMatchObject({ status: 'pending' })
  letGo()
  expect(await approvals.waitForOutcome(signup.id, patience)).toMatchObject({ status: 'approved' })
})

test('a rejection is an outcome, too', async () => {
  world.script.answer = responding(403)
  const approvals = startProcess()
  const signup = await world.started(owner)
  approvals.startIfIdle(signup.id)
  const outcome = await approvals.waitForOutcome(signup.id, patience)
  expect(outcome).toMatchObject({ status: 'rejected', rejection: 'integrator_failed' })
})

test('a leased approval is left alone until its lease has expired', async () => {
  const signup = await world.started(owner)
  const leases = createApprovalLeases({ pool: world.pool, owner: 'killed', leaseMs: 600 })
  expect(await leases.take(signup.id)).toBe(true)
  const approvals = startProcess({ pollIntervalMs: 50 })
  const leasedUntil = await until(signup.id)
  expect(await approvals.waitForOutcome(signup.id, patience)).toMatchObject({ status: 'approved' })
  expect(await databaseTime()).toBeGreaterThanOrEqual(leasedUntil)
  expect(world.sentTo(signup.id)).toHaveLength(1)
})

test('a lease is renewed while the service takes longer than the lease lasts', async () => {
  const { asked, letGo } = world.holdAnswers()
  const signup = await world.started(owner)
  const slow = startProcess({ leaseMs: 300 })
  slow.startIfIdle(signup.id)
  await asked
  const first = await until(signup.id)
  const other = startProcess({ pollIntervalMs: 30 })
  // After two lease durations, the other process still has not taken it.
  while ((await databaseTime()) < first + 600) await other.waitForOutcome(signup.id, 50)
  letGo()
  expect(await other.waitForOutcome(signup.id, patience)).toMatchObject({ status: 'approved' })
  expect(world.sentTo(signup.id)).toHaveLength(1)
})

test('a process that loses its lease stops waiting and leaves the approval to the new owner', async () => {
  world.script.answer = responding(500)
  const { promise: waiting, resolve: isWaiting } = Promise.withResolvers<AbortSignal>()
  const signup = await world.started(owner)
  const loser = startProcess({
    leaseMs: 300,
    async sleep(ms, signal) {
      if (ms <= 0) return
      isWaiting(signal)
      const { promise, reject } = Promise.withResolvers<void>()
      signal.addEventListener('abort', () => reject(signal.reason))
      await promise
    },
  })
  loser.startIfIdle(signup.id)
  const signal = await waiting
  await world.pool.query(
    `update tidegate.gate_leases set owner = 'another' where gate_session_id = $1`,
    [signup.id],
  )
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
  await loser.stop()
  expect(world.sentTo(signup.id)).toHaveLength(1)
  const { rows } = await world.pool.query(
    'select owner from tidegate.gate_leases where gate_session_id = $1',
    [signup.id],
  )
  expect(rows).toEqual([{ owner: 'another' }])
})

test('a stopping process aborts its waits, and another one takes over at once', async () => {
  const { promise: waiting, resolve: isWaiting } = Promise.withResolvers<void>()
  world.script.answer = (sent) => {
    isWaiting()
    return responding(500)(sent)
  }
  const signup = await world.started(owner)
  const first = startProcess({ leaseMs: 600_000 })
  first.startIfIdle(signup.id)
  await waiting
  await first.stop()
  world.script.answer = account
  const second = startProcess()
  expect(await second.waitForOutcome(signup.id, patience)).toMatchObject({ status: 'approved' })
  expect(world.sentTo(signup.id)).toHaveLength(2)
  first.startIfIdle(signup.id)
  expect(world.sentTo(signup.id)).toHaveLength(2)
})

test('a response that arrives after its process has stopped does not change the outcome', async () => {
  const { asked, letGo } = world.holdAnswers()
  const signup = await world.started(owner)
  const first = startProcess({ leaseMs: 600_000 })
  first.startIfIdle(signup.id)
  await asked
  await first.stop()
  world.script.answer = account
  const second = startProcess()
  expect(await second.waitForOutcome(signup.id, patience)).toMatchObject({ status: 'approved' })
  const before = await world.delivered(signup)
  letGo()
  await second.stop()
  expect(await world.delivered(signup)).toEqual(before)
  expect(await world.count('GateSessionApproved', signup.id)).toBe(1)
  expect(world.sentTo(signup.id)).toHaveLength(2)
})

test('a service that does not respond delays neither other organizations nor new requests for its own approvals', async () => {
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>()
  const silent = await world.owner()
  world.script.answer = async (sent) => {
    if (sent.body.includes(silent.serviceId)) await held
    return account(sent)
  }
  const stuck: Signup[] = []
  for (let n = 0; n < 4; n++) stuck.push(await world.started(silent))
  const others = [await world.started(owner), await world.started(owner), await world.started()]
  const approvals = startProcess({ pollIntervalMs: 30, concurrency: { max: 3, maxPerName: 2 } })
  const outcomes = (signups: Signup[]) =>
    Promise.all(
      signups.map(async ({ id }) => (await approvals.waitForOutcome(id, patience))?.status),
    )
  expect(await outcomes(others)).toEqual(others.map(() => 'approved'))
  const asked = () => stuck.filter(({ id }) => world.sentTo(id).length > 0)
  await eventually(() => expect(asked()).toHaveLength(2))
  const another = stuck.find((signup) => !asked().includes(signup))
  if (another) approvals.startIfIdle(another.id)
  await eventually(() => expect(asked()).toHaveLength(3))
  expect(asked()).toContain(another)
  letGo()
  expect(await outcomes(stuck)).toEqual(stuck.map(() => 'approved'))
  expect(new Set(stuck.map(({ id }) => world.sentTo(id).length))).toEqual(new Set([1]))
})

test('a failed step is retried at the next poll', async () => {
  const signup = await world.started(owner)
  let failures = 0
  const approvals = startProcess({
    pollIntervalMs: 30,
    decideAs: (actor) => (request) =>
      ++failures <= 2 ? Promise.reject(new Error('away')) : world.parts.decideAs(actor)(request),
  })
  expect(await approvals.waitForOutcome(signup.id, patience)).toMatchObject({ status: 'approved' })
})

async function until(id: string): Promise<number> {
  const { rows } = await world.pool.query<{ until: number }>(
    'select expires_at::float8 as until from tidegate.gate_leases where gate_session_id = $1',
    [id],
  )
  return rows[0]?.until ?? Number.NaN
}

async function databaseTime(): Promise<number> {
  const { rows } = await world.pool.query<{ now: number }>(
    'select extract(epoch from clock_timestamp())::float8 * 1000 as now',
  )
  return rows[0]?.now ?? Number.NaN
}
