import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { type Ask, openRaceWorld, type RaceWorld, type Signup } from '../support/gate-races.ts'

const racers = 64
const sessions = 50
const atOnce = 2
/** Round trips to a server that whoever refuses makes before, at most; one more from one session to the next. */
const headStarts = 5

interface Entry {
  path: string
  token?: string
  body?: object
  /** Round trips to the server before the request. */
  after?: number
}

describe('two servers', () => {
  let world: RaceWorld
  beforeAll(async () => {
    world = await openRaceWorld({ log: 'postgres' })
  }, 120_000)
  afterAll(() => world?.stop())

  /** Sends 64 requests concurrently, half to each server, and returns their outcomes. */
  const race = (requestOf: (racer: number) => Entry) =>
    Promise.all(
      Array.from({ length: racers }, async (_, racer) => {
        const { path, after = 0, ...request } = requestOf(racer)
        const server = racer % 2
        for (let trip = 0; trip < after; trip++) await world.roundTrip(server)
        return answered(path, { server, ...request })
      }),
    )

  /** As clients do, who ask again where a server is too slow to say what became of a request. */
  async function answered(path: string, request: Ask): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      const { outcome } = await world.ask(path, request)
      if (outcome !== '503 service.unavailable' || attempt === 5) return outcome
    }
  }

  /** The status of a signup once it is not pending any more. */
  const ended = ({ id, pollToken: token }: Signup) =>
    eventually(
      async () => {
        const { status } = await world.get(`sessions/${id}`, { method: 'GET', token })
        expect(status).not.toBe('pending')
        return status
      },
      { intervalMs: 500 },
    )

  const approved: (Signup & { ackToken: string; agentToken: string })[] = []

  test('of 64 approvals one makes the account, and all are told', async () => {
    await each(sessions, async () => {
      const signup = await world.open()
      const body = await world.approval(signup.id)
      const outcomes = await race(() => ({ path: `sessions/${signup.id}/approve`, body }))
      expect(without(outcomes, '200', inProgress)).toEqual([])
      expect(await ended(signup)).toBe('approved')
      // A client that was told to wait retries.
      expect((await world.ask(`sessions/${signup.id}/approve`, { body })).outcome).toBe('200')
      expect(world.integrator.accounts.get(signup.id)?.asked).toBe(1)
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
      const outcomes = await race(() => ({
        path: `sessions/${id}/ack`,
        token,
        body: { ack_token },
      }))
      expect(without(outcomes, '410 gate.delivery_consumed', '429 gate.rate_limit')).toEqual([
        '200',
      ])
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
      expect(without(outcomes, '410 gate.session_already_resolved', '429 gate.rate_limit')).toEqual(
        ['200'],
      )
      logins.push(id)
    })
    const history = await world.history()
    for (const id of logins) expect(history.get(`LoginCodeConsumed ${id}`)).toBe(1)
  }, 120_000)

  test('of 64 wrong codes of a claim five are counted', async () => {
    // Its person approves in another network.
    const { id, pollToken: token } = await world.open({ ip: '198.51.100.7', claim: 'supported' })
    const { claim_code } = await world.get(`sessions/${id}/approve`, {
      body: await world.approval(id),
    })
    const code = claim_code === '000 000' ? '000 001' : '000 000'
    const outcomes = await race(() => ({ path: `sessions/${id}/claim`, token, body: { code } }))
    expect(without(outcomes, resolved, '429 gate.rate_limit')).toEqual(
      Array(5).fill('403 gate.claim_code_invalid'),
    )
    const history = await world.history()
    expect(history.get(`GateSessionClaimFailed ${id}`)).toBe(5)
    expect(history.get(`GateSessionRejected ${id}`)).toBe(1)
  }, 60_000)

  test('of 32 approvals and 32 refusals of one signup one kind wins', async () => {
    const signups: { id: string; status: unknown }[] = []
    await each(sessions, async (index) => {
      const signup = await world.open()
      const { id } = signup
      const body = await world.approval(id)
      const approve = { path: `sessions/${id}/approve`, body }
      // To refuse takes less work: without a head start approvals would hardly ever be first.
      const cancel = { path: `sessions/${id}/cancel`, after: index % headStarts }
      // Sends both kinds of request to each server.
      const isCancel = (racer: number) => (racer & 2) !== 0
      const outcomes = await race((racer) => (isCancel(racer) ? cancel : approve))
      const status = await ended(signup)
      const cancels = outcomes.filter((_, racer) => isCancel(racer))
      const approvals = outcomes.filter((_, racer) => !isCancel(racer))
      const ends = { cancels: [...new Set(cancels)], approvals: [...new Set(approvals)] }
      if (status === 'approved') {
        expect(without(ends.approvals, '200', inProgress)).toEqual([])
        expect(without(ends.cancels, inProgress, resolved)).toEqual([])
      } else {
        expect({ status, ...ends }).toEqual({
          status: 'rejected',
          cancels: ['200'],
          approvals: [resolved],
        })
      }
      expect(world.integrator.accounts.get(id)?.asked ?? 0).toBe(status === 'approved' ? 1 : 0)
      signups.push({ id, status })
    })
    const history = await world.history()
    for (const { id, status } of signups) {
      const events = ['GateSessionApprovalStarted', 'GateSessionApproved', 'GateSessionRejected']
      const expected = status === 'approved' ? [1, 1, 0] : [0, 0, 1]
      expect(events.map((type) => history.get(`${type} ${id}`) ?? 0)).toEqual(expected)
    }
  }, 120_000)
})

const inProgress = '409 gate.approval_in_progress'
const resolved = '409 gate.session_already_resolved'

/** The outcomes but for those that others than the winner may have. */
const without = (outcomes: string[], ...others: string[]) =>
  outcomes.filter((outcome) => !others.includes(outcome))

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
