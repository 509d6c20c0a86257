import { beforeEach, describe, expect, test } from 'vitest'
import { lookupHashes } from '../../../../infra/crypto/api-keys.ts'
import { matchesTokenHash, tokenHashes } from '../../../../infra/crypto/tokens.ts'
import { derivedHexId, webhookEventId } from '../../../../infra/ids.ts'
import { type DirectRefusal, directEventType } from '../../../../infra/wire/webhooks/direct-call.ts'
import { findAgentToken } from '../../../../projections/gate/queries.ts'
import { findDelivery } from '../../../../projections/webhooks/queries.ts'
import type { ApprovalDeps } from '../../../../services/gate/approval/account-request.ts'
import { agentTokenTtlMs, deliveryTtlMs, sessionTtlMs } from '../../../../services/gate/sessions.ts'
import { signUpOrganization } from '../../../../services/organizations/sign-up.ts'
import { eventually } from '../../../support/eventually.ts'
import { answeringService as account } from '../../../support/gate-flow.ts'
import { tester } from '../../../support/projections.ts'
import { responding, type ServiceAnswer } from '../gate-api.ts'
import { type Signup, useApprovalWorld } from './world.ts'

class Crash extends Error {
  override name = 'Crash'
}

interface CrashPoint {
  /** Number of the external call, from 1. */
  step: number
  /** True if the call took effect but its result is lost. */
  effect: boolean
}

/** Returns deps that work until the process crashes at the given point. */
function dyingAt(deps: ApprovalDeps, point: CrashPoint | undefined) {
  let steps = 0
  let isDead = false

  function die(): never {
    isDead = true
    throw new Crash()
  }

  function mortal<Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) {
    return async (...args: Args): Promise<Result> => {
      if (isDead) throw new Crash()
      const isLast = ++steps === point?.step
      if (isLast && !point.effect) die()
      const result = await call(...args)
      return isLast ? die() : result
    }
  }

  const { raise, attempt, cancel } = deps.directCalls
  const decideAs: ApprovalDeps['decideAs'] = (actor) => (request) =>
    mortal(() => deps.decideAs(actor)(request))()
  const dying: ApprovalDeps = {
    ...deps,
    decideAs,
    pool: new Proxy(deps.pool, {
      get: (pool, name) =>
        name === 'query'
          ? mortal(async (...args: unknown[]) => Reflect.apply(pool.query, pool, args))
          : Reflect.get(pool, name),
    }),
    vault: { ...deps.vault, ensure: mortal(deps.vault.ensure) },
    directCalls: { raise: mortal(raise), attempt: mortal(attempt), cancel: mortal(cancel) },
    signUpOrganization: ({ startedAt, ...signup }) =>
      signUpOrganization({ ...deps, decide: decideAs(tester), idTime: startedAt }, signup),
  }
  return { deps: dying, steps: () => steps }
}

const world = await useApprovalWorld()
const owner = await world.owner()
beforeEach(() => {
  world.script.answer = account
  world.waits.length = 0
})

const { approvalDeps: deps, conclude } = world
const crash = async () => Promise.reject(new Crash())

const timeOut: ServiceAnswer = () => ({
  kind: 'failure',
  reason: 'timeout',
  message: 'The receiver took too long.',
  durationMs: 10_000,
})

/** Sends the responses in order, then repeats the last one. */
function inTurn(...answers: [ServiceAnswer, ...ServiceAnswer[]]): void {
  world.script.answer = (sent) =>
    (answers.length > 1 ? answers.shift() : answers[0])?.(sent) ?? timeOut(sent)
}

const rejected = (problem: unknown) => ({
  status: 'rejected',
  rejection: 'integrator_failed',
  problem,
})

async function expectApprovedOnce(signup: Signup) {
  const session = await world.find(signup.id)
  expect(session).toMatchObject({ status: 'approved', delivery: 'waiting' })
  expect(await world.count('GateSessionApproved', signup.id)).toBe(1)
  expect(await world.count('GateSessionRejected', signup.id)).toBe(0)
  return { session, delivered: await world.delivered(signup) }
}

async function deliveryOf({ id }: Signup) {
  const delivery = await findDelivery(
    world.pool,
    derivedHexId('wdlv', webhookEventId(directEventType, id), owner.endpointId),
  )
  if (!delivery) throw new Error(`nothing was raised for ${id}`)
  return delivery
}

/** Checks that the signup has one organization, whose four working keys are the delivered ones. */
async function expectOneOrganization(outputs: Record<string, string>, { id }: Signup) {
  const { rows } = await world.pool.query(
    `select organization_id as id, array_agg(lookup_hash order by lookup_hash) as keys from read.organizations
     join read.api_keys k using (organization_id) where slug like $1 and k.status = 'active' group by 1`,
    [`%-${id.slice(-8)}`],
  )
  const { keyring } = world.parts
  const delivered = Object.values(outputs).filter((value) => /^[ps]k_/.test(value))
  const keys = delivered.map((key) => lookupHashes(keyring, key)[0]).toSorted()
  expect(rows).toEqual([{ id: outputs.TIDEGATE_ORGANIZATION_ID, keys }])
  expect(keys).toHaveLength(4)
}

describe('a service that responds', () => {
  test('delivers its credentials and ours, each sealed to the agent', async () => {
    const signup = await world.started(owner)
    await conclude(signup)
    const { session, delivered } = await expectApprovedOnce(signup)
    expect(delivered.integrator.outputs).toEqual({
      ACME_API_KEY: `key of ${session.gate_account_id}`,
    })
    const [[name, agentToken = ''] = []] = Object.entries(delivered.gate.outputs)
    expect(name).toBe(`${owner.serviceId.toUpperCase().replaceAll('-', '_')}_GATE_AGENT_TOKEN`)
    const { ack_token: ackToken = '' } = delivered.gate
    const { keyring } = world.parts
    expect(matchesTokenHash(keyring, { token: ackToken, hash: session.ack_token_hash })).toBe(true)
    expect(session.delivery_expires_at).toBe(world.now.ms + deliveryTtlMs)
    const issued = await findAgentToken(world.pool, tokenHashes(keyring, agentToken))
    expect(issued).toMatchObject({ status: 'active', expires_at: world.now.ms + agentTokenTtlMs })
  })

  test('gets one event with the data of the signup', async () => {
    const signup = await world.started(owner)
    await conclude(signup)
    const [request, ...others] = world.sentTo(signup.id)
    expect(others).toEqual([])
    expect(JSON.parse(request?.body ?? '')).toMatchObject({
      object: 'webhook_event',
      type: 'gate.session.approved',
      data: {
        service_id: owner.serviceId,
        gate_session_id: signup.id,
        gate_account_id: (await world.find(signup.id)).gate_account_id,
        account_name: 'Robin',
        metadata: { team: 'blue' },
        foil: { verdict: 'human', score: 0.12 },
        delivery: signup.keys.delivery,
      },
    })
  })

  test('gets no agent token without a dashboard', async () => {
    const signup = await world.started(await world.owner({ fields: { dashboard_login_url: null } }))
    await conclude(signup)
    const { gate } = (await expectApprovedOnce(signup)).delivered
    expect(gate.outputs).toEqual({})
  })

  test('is retried on schedule with the same event until its response is valid', async () => {
    inTurn(timeOut, responding(500), responding(200, 'nonsense'), responding(409), account)
    const signup = await world.started(owner)
    await conclude(signup)
    await expectApprovedOnce(signup)
    expect(world.waits).toEqual([0, 1000, 2000, 4000, 8000])
    const requests = world.sentTo(signup.id).map(({ body }) => body)
    expect([requests.length, new Set(requests).size]).toEqual([5, 1])
  })

  test('is called even if the person approves at the last moment', async () => {
    const signup = await world.signup(owner)
    world.now.ms += sessionTtlMs - 1
    await world.approve(signup)
    await conclude(signup)
    await expectApprovedOnce(signup)
  })
})

describe('a service that does not provide the account', () => {
  test('refuses: the signup is rejected at once with the problem', async () => {
    inTurn(responding(500), responding(400, 'no more accounts: secret'))
    const signup = await world.started(owner)
    await conclude(signup)
    expect(await world.find(signup.id)).toMatchObject(
      rejected('The service answered with status 400.'),
    )
    expect(await world.count('GateSessionApproved', signup.id)).toBe(0)
  })

  test('does not respond: the signup is rejected at its deadline and not before', async () => {
    // Advances the simulated clock by the timeout.
    inTurn((sent) => {
      world.now.ms += 10_000
      return timeOut(sent)
    })
    const signup = await world.started(owner)
    const { expires_at } = await world.find(signup.id)
    await conclude(signup)
    expect(await world.find(signup.id)).toMatchObject(rejected('The receiver took too long.'))
    expect(world.now.ms).toBeLessThanOrEqual(expires_at)
    expect(world.now.ms).toBeGreaterThan(expires_at - 71_000)
    expect(world.sentTo(signup.id).length).toBeGreaterThan(12)
  })

  const refusals: [DirectRefusal, RegExp][] = [
    ['organization_inactive', /organization is not active/],
    ['endpoint_unknown', /no webhook endpoint/],
    ['endpoint_disabled', /endpoint is disabled/],
    ['endpoint_not_subscribed', /is not subscribed to approvals/],
  ]
  test.each(refusals)(
    'cannot be called, %s: the signup is rejected and the delivery cancelled',
    async (reason, problem) => {
      const signup = await world.started(owner)
      const given: string[] = []
      const { directCalls } = world.parts
      await conclude(
        signup,
        deps({
          directCalls: {
            ...directCalls,
            attempt: async () => ({ kind: 'not_sent', reason }),
            async cancel(which, why) {
              given.push(why)
              await directCalls.cancel(which, why)
            },
          },
        }),
      )
      expect(await world.find(signup.id)).toMatchObject(rejected(expect.stringMatching(problem)))
      expect(given).toEqual([expect.stringMatching(problem)])
    },
  )

  test('is not readable: the approval stays pending', async () => {
    const signup = await world.started(owner)
    const { directCalls } = world.parts
    const attempt = async () => ({ kind: 'not_sent', reason: 'not_raised' }) as const
    await expect(
      conclude(signup, deps({ directCalls: { ...directCalls, attempt } })),
    ).rejects.toThrow('not readable')
    await conclude(signup)
    await expectApprovedOnce(signup)
  })
})

describe('after a crash', () => {
  interface Case {
    name: string
    start: () => Promise<Signup>
    answers: [ServiceAnswer, ...ServiceAnswer[]]
    requests: number
  }
  const cases: Case[] = [
    {
      name: 'a service',
      start: () => world.started(owner),
      answers: [responding(503), account],
      requests: 2,
    },
    { name: 'the built-in service', start: () => world.started(), answers: [account], requests: 0 },
  ]

  test.each(cases)(
    'at $name, the approval is concluded once, with working secrets',
    async ({ start, answers, requests }) => {
      const whole = dyingAt(deps(), undefined)
      inTurn(...answers)
      await conclude(await start(), whole.deps)
      expect(whole.steps()).toBeGreaterThanOrEqual(5)
      for (let step = 1; step <= whole.steps(); step++) {
        for (const effect of [false, true]) await crashAndGoOn({ step, effect })
      }

      async function crashAndGoOn(point: CrashPoint) {
        inTurn(...answers)
        const signup = await start()
        await expect(conclude(signup, dyingAt(deps(), point).deps)).rejects.toThrow(Crash)
        const before = await world.find(signup.id)
        const first = before.status === 'approved' ? await world.delivered(signup) : undefined
        await conclude(signup)
        const { delivered } = await expectApprovedOnce(signup)
        if (first) expect(delivered).toEqual(first)
        // Once, or twice if the request was in flight at the crash.
        const sent = world.sentTo(signup.id).length
        expect([requests, Math.min(requests + 1, requests * 2)]).toContain(sent)
        if (requests === 0) await expectOneOrganization(delivered.integrator.outputs, signup)
      }
    },
  )

  test('a recorded refusal is final, whatever the service would respond now', async () => {
    inTurn(responding(422), account)
    const signup = await world.started(owner)
    await expect(conclude(signup, deps({ decideAs: () => crash }))).rejects.toThrow(Crash)
    await conclude(signup)
    expect(await world.find(signup.id)).toMatchObject(
      rejected('The service answered with status 422.'),
    )
    expect(world.sentTo(signup.id)).toHaveLength(1)
  })

  test.each([
    ['before the service was asked', (): Partial<ApprovalDeps> => ({ sleep: crash })],
    [
      'after an attempt',
      (): Partial<ApprovalDeps> => ({ sleep: async (ms) => (ms > 0 ? crash() : undefined) }),
    ],
  ])(
    'a crash %s that nobody resumed in time cancels the delivery and rejects the signup',
    async (_name, dying) => {
      inTurn(responding(500))
      const signup = await world.started(owner)
      await expect(conclude(signup, deps(dying()))).rejects.toThrow(Crash)
      expect((await deliveryOf(signup)).status).toBe('pending')
      world.now.ms += 2 * sessionTtlMs + 60_000
      await expect(conclude(signup, deps({ decideAs: () => crash }))).rejects.toThrow(Crash)
      await conclude(signup)
      const problem = 'The signup could not be finished in time.'
      expect(await world.find(signup.id)).toMatchObject(rejected(problem))
      await eventually(async () =>
        expect(await deliveryOf(signup)).toMatchObject({ status: 'skipped', error: problem }),
      )
    },
  )

  test('an attempt whose response was lost is repeated, even after the session has expired', async () => {
    for (const [lateMs, status] of [
      [sessionTtlMs + 60_000, 'approved'],
      [2 * sessionTtlMs + 60_000, 'rejected'],
    ] as const) {
      const signup = await world.started(owner)
      await expect(conclude(signup, deps({ decideAs: () => crash }))).rejects.toThrow(Crash)
      world.now.ms += lateMs
      await conclude(signup)
      expect(await world.find(signup.id)).toMatchObject({ status })
    }
  })
})

test('an overdue attempt is made at once', async () => {
  inTurn(responding(500), account)
  const signup = await world.started(owner)
  const away = deps({
    sleep: async (ms) => {
      if (ms > 0) throw new Crash()
    },
  })
  await expect(conclude(signup, away)).rejects.toThrow(Crash)
  world.now.ms += 5 * 60_000
  await conclude(signup)
  await expectApprovedOnce(signup)
  expect(world.waits).toEqual([0])
})

describe('the built-in service', () => {
  test('creates an organization with its keys', async () => {
    const signup = await world.started(undefined, { account_name: 'Robin & Söhne' })
    await conclude(signup)
    const { delivered } = await expectApprovedOnce(signup)
    expect(Object.keys(delivered.integrator.outputs)).toEqual([
      'TIDEGATE_ORGANIZATION_ID',
      'TIDEGATE_PUBLISHABLE_KEY',
      'TIDEGATE_SECRET_KEY',
      'TIDEGATE_TEST_PUBLISHABLE_KEY',
      'TIDEGATE_TEST_SECRET_KEY',
    ])
    const { TIDEGATE_ORGANIZATION_ID: id } = delivered.integrator.outputs
    const { rows } = await world.pool.query(
      'select name from read.organizations where organization_id = $1',
      [id],
    )
    expect(rows).toEqual([{ name: 'Robin & Söhne' }])
    expect(world.sentTo(signup.id)).toEqual([])
  })

  test('two concurrent processes create one organization and one set of keys', async () => {
    const signup = await world.started()
    await Promise.all([conclude(signup), conclude(signup)])
    const { delivered } = await expectApprovedOnce(signup)
    await expectOneOrganization(delivered.integrator.outputs, signup)
  })

  test('rejects the signup if the name is invalid for an organization', async () => {
    const signup = await world.started(undefined, { account_name: 'a\u0007b' })
    await conclude(signup)
    expect(await world.find(signup.id)).toMatchObject(rejected(expect.stringContaining('name')))
  })
})

test('a session without an approval is left alone', async () => {
  const signup = await world.signup(owner)
  await conclude(signup)
  expect(await world.find(signup.id)).toMatchObject({
    status: 'pending',
    approval_started_at: null,
  })
  expect(world.sentTo(signup.id)).toEqual([])
})
