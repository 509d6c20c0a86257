import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clusterLogs } from '../support/cluster.ts'
import { openRaceWorld, type RaceWorld, type Signup } from '../support/gate-races.ts'

const racers = 64
/** Postgres takes the volume; that the other log decides as well shows with a few. */
const sessionsOn = { postgres: 50, kafka: 5 }
const atOnce = 2

describe.each(clusterLogs())('two servers on %s', (log) => {
  const sessions = sessionsOn[log]
  let world: RaceWorld
  beforeAll(async () => {
    world = await openRaceWorld({ log })
  }, 120_000)
  afterAll(() => world?.stop())

  /** What 64 requests at once are answered, half of them by each server: how often each outcome. */
  async function race(requestOf: (racer: number) => { path: string; token?: string; body?: object }) {
    const outcomes: Record<string, number> = {}
    const one = async (racer: number) => {
      const { path, ...request } = requestOf(racer)
      const { outcome } = await world.ask(path, { server: racer % 2, ...request })
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
    }
    await Promise.all(Array.from({ length: racers }, (_, racer) => one(racer)))
    return outcomes
  }

  const approved: (Signup & { ackToken: string; agentToken: string })[] = []

  test('of 64 approvals one makes the account, and all are told', async () => {
    const integrators = world.integrator.accounts
    await each(sessions, async () => {
      const signup = await world.open()
      const body = await world.approval(signup.id)
      const outcomes = await race(() => ({ path: `sessions/${signup.id}/approve`, body }))
      const { 200: told = 0, '409 gate.approval_in_progress': waiting = 0, ...others } = outcomes
      expect({ others, answered: told + waiting }).toEqual({ others: {}, answered: racers })
      expect(told).toBeGreaterThan(0)
      expect(integrators.get(signup.id)?.asked).toBe(1)
      approved.push({ ...signup, ...(await world.delivered(signup)) })
    })
    expect(new Set(approved.map(({ agentToken }) => agentToken)).size).toBe(sessions)
    const history = await world.history()
    for (const { id } of approved) {
      expect(history.get(`GateSessionApprovalStarted ${id}`)).toBe(1)
      expect(history.get(`GateSessionApproved ${id}`)).toBe(1)
    }
  }, 120_000)

  test('of 64 acknowledgements one is taken', async () => {
    await each(sessions, async (index) => {
      const { id, pollToken: token, ackToken: ack_token } = at(approved, index)
      const outcomes = await race(() => ({ path: `sessions/${id}/ack`, token, body: { ack_token } }))
      const {
        200: taken,
        '410 gate.delivery_consumed': late = 0,
        '429 gate.rate_limit': limited = 0,
        ...others
      } = outcomes
      expect({ others, taken, all: 1 + late + limited }).toEqual({ others: {}, taken: 1, all: racers })
    })
    const history = await world.history()
    for (const { id } of approved) expect(history.get(`GateDeliveryAcknowledged ${id}`)).toBe(1)
  }, 120_000)

  test('of 64 that use a login code one gets in', async () => {
    const token = world.cluster.owner.secret.key
    const logins: string[] = []
    await each(sessions, async (index) => {
      const { agentToken } = at(approved, index)
      const opened = await world.get('login-sessions', {
        token: agentToken,
        body: { service_id: world.serviceId },
      })
      const id = String(opened.id)
      const { code } = await world.get(`sessions/${id}/approve`, { body: await world.approval(id) })
      const outcomes = await race(() => ({ path: 'login-sessions/consume', token, body: { code } }))
      const {
        200: taken,
        '410 gate.session_already_resolved': late = 0,
        '429 gate.rate_limit': limited = 0,
        ...others
      } = outcomes
      expect({ others, taken, all: 1 + late + limited }).toEqual({ others: {}, taken: 1, all: racers })
      logins.push(id)
    })
    const history = await world.history()
    for (const id of logins) expect(history.get(`LoginCodeConsumed ${id}`)).toBe(1)
  }, 120_000)

  test('of 32 approvals and 32 refusals of one signup one kind wins', async () => {
    const ended: { id: string; status: unknown }[] = []
    await each(sessions, async () => {
      const { id, pollToken: token } = await world.open()
      const body = await world.approval(id)
      const approve = { path: `sessions/${id}/approve`, body }
      const cancel = { path: `sessions/${id}/cancel` }
      // The last two bits: which server, and what.
      const outcomes = await race((racer) => (racer & 2 ? cancel : approve))
      const { status } = await world.get(`sessions/${id}`, { method: 'GET', token })
      expect(outcomes).toEqual(expect.objectContaining({}))
      const isAllowed = status === 'approved' ? approvedOutcomes : rejectedOutcomes
      expect(Object.keys(outcomes).filter((outcome) => !isAllowed.includes(outcome))).toEqual([])
      expect(world.integrator.accounts.get(id)?.asked ?? 0).toBe(status === 'approved' ? 1 : 0)
      ended.push({ id, status })
    })
    const history = await world.history()
    for (const { id, status } of ended) {
      const events = ['GateSessionApprovalStarted', 'GateSessionApproved', 'GateSessionRejected']
      const expected = status === 'approved' ? [1, 1, 0] : [0, 0, 1]
      expect(events.map((type) => history.get(`${type} ${id}`) ?? 0)).toEqual(expected)
    }
  }, 120_000)
})

const approvedOutcomes = ['200', '409 gate.approval_in_progress', '409 gate.session_already_resolved']
const rejectedOutcomes = ['200', '409 gate.session_already_resolved']

/** Runs `work` so many times, a few at once. */
async function each(times: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    for (let index = next++; index < times; index = next++) await work(index)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

function at<T>(items: readonly T[], index: number): T {
  const item = items[index]
  if (item === undefined) throw new Error(`there is no item ${index}`)
  return item
}
