import { describe, expect, test } from 'vitest'
import { ApiError } from '../../../../infra/errors/errors.ts'
import { NoValidResponse } from '../../../../services/cli/ask-server.ts'
import {
  awaitDecision,
  type DecisionDeps,
  outcomeOfPoll,
  outcomeOfPollError,
} from '../../../../services/cli/signup/decision.ts'
import { failureOf } from '../../../../services/cli/signup/failure.ts'
import type { PolledSession } from '../../../../services/cli/signup/gate-api.ts'

const pending: PolledSession = { status: 'pending' }

/** Answers in turn, the last one for ever, on a clock that only sleeping moves. */
function world(...answers: (PolledSession | Error)[]) {
  let [time, polls] = [0, 0]
  const slept: number[] = []
  const told: string[] = []
  const awaiting: DecisionDeps = {
    async poll() {
      const answer = answers[Math.min(polls++, answers.length - 1)] ?? pending
      if (answer instanceof Error) throw answer
      return answer
    },
    cancel: async () => void told.push('cancel'),
    claim: async () => void told.push('claim'),
    async sleep(ms) {
      slept.push(ms)
      time += ms
    },
    now: () => time,
    onWaiting: ({ inProgress, problem }) =>
      told.push(problem ?? (inProgress ? 'in progress' : 'pending')),
    onTooLate: () => void told.push('too late'),
  }
  return { awaiting, slept, told, polls: () => polls }
}

const never = new AbortController().signal
const patient = { stop: never, timeUp: never }
const impatient = (why: string) => ({ stop: AbortSignal.abort(why), timeUp: never })
const outOfTime = { stop: AbortSignal.abort('timed_out'), timeUp: AbortSignal.abort('timed_out') }

describe('polling', () => {
  test('goes on every three seconds until somebody decides', async () => {
    const { awaiting, slept, told } = world(
      pending,
      { status: 'pending', approval: 'in_progress' },
      { status: 'rejected', reason: 'closed' },
    )
    expect(await awaitDecision(awaiting, patient)).toEqual({ kind: 'rejected', reason: 'closed' })
    expect([slept, told]).toEqual([
      [3000, 3000],
      ['pending', 'in progress'],
    ])
  })

  test('asks for the code for as long as the server waits for it', async () => {
    const claiming: PolledSession = { status: 'pending', claim: 'waiting' }
    const { awaiting, told } = world(claiming, claiming, {
      status: 'rejected',
      reason: 'claim_failed',
    })
    const outcome = await awaitDecision(awaiting, patient)
    expect(told).toEqual(['pending', 'claim', 'pending', 'claim'])
    expect(outcome.kind === 'rejected' && failureOf(outcome).message).toMatch(/Five wrong codes/)
  })

  test('never asks more often than thirty times a minute, and waits as long as it is told to', async () => {
    const limited = (seconds: string) =>
      new ApiError('gate.rate_limit', { headers: { 'retry-after': seconds } })
    const { awaiting, slept } = world(limited('17'), limited('1'), limited('soon'), {
      status: 'expired',
    })
    expect(await awaitDecision(awaiting, patient)).toEqual({ kind: 'expired' })
    expect(slept).toEqual([17_000, 3000, 3000])
  })

  test('outlives a server that does not answer for a while, but not for ever', async () => {
    const short = world(new NoValidResponse('gone'), new ApiError('service.unavailable'), {
      status: 'expired',
    })
    expect(await awaitDecision(short.awaiting, patient)).toEqual({ kind: 'expired' })
    expect(short.told[0]).toBe('gone')
    const long = world(new NoValidResponse('gone'))
    expect(await awaitDecision(long.awaiting, patient)).toEqual({ kind: 'unknown' })
    expect(long.polls()).toBeLessThan(20 * 20 + 5)
  })

  test.each([
    ['gate.session_expired', { kind: 'expired' }],
    ['gate.delivery_consumed', { kind: 'consumed' }],
  ] as const)('ends with %s', (code, outcome) => {
    expect(outcomeOfPollError(new ApiError(code))).toEqual(outcome)
  })

  test('ends with what no other poll would mend', async () => {
    const { awaiting } = world(new ApiError('auth.invalid_api_key'))
    await expect(awaitDecision(awaiting, patient)).rejects.toThrow('key')
  })
})

describe('whoever does not want to wait any longer', () => {
  test('cancels a signup that nobody has decided', async () => {
    const stop = new AbortController()
    const { awaiting, told } = world(pending)
    const sleep = async () => stop.abort('interrupted')
    expect(
      await awaitDecision({ ...awaiting, sleep }, { stop: stop.signal, timeUp: never }),
    ).toEqual({
      kind: 'stopped',
      why: 'interrupted',
    })
    expect(told).toEqual(['pending', 'cancel'])
  })

  test('waits on where a person has approved: the credentials would be lost', async () => {
    const cancel = async () => Promise.reject(new ApiError('gate.approval_in_progress'))
    const { awaiting, told } = world(
      { status: 'pending', approval: 'in_progress' },
      { status: 'rejected' },
    )
    const outcome = await awaitDecision({ ...awaiting, cancel }, impatient('interrupted'))
    expect(outcome).toEqual({ kind: 'rejected', reason: 'declined' })
    expect(told).toEqual(['too late', 'in progress'])
  })

  describe('does not wait longer than was set where a person has approved', () => {
    const cancel = async () => Promise.reject(new ApiError('gate.approval_in_progress'))
    const inProgress: PolledSession = { status: 'pending', approval: 'in_progress' }

    test('with nothing to wait for', async () => {
      const { awaiting, told } = world(inProgress)
      expect(await awaitDecision({ ...awaiting, cancel }, outOfTime)).toEqual({ kind: 'abandoned' })
      expect(told).toEqual([])
    })

    test('after Ctrl-C, too', async () => {
      const { awaiting, told, slept } = world(inProgress)
      const timeUp = new AbortController()
      const sleep = async (ms: number, stop: AbortSignal | undefined) => {
        await awaiting.sleep(ms, stop)
        if (slept.length === 2) timeUp.abort()
      }
      const patience = { stop: AbortSignal.abort('interrupted'), timeUp: timeUp.signal }
      expect(await awaitDecision({ ...awaiting, cancel, sleep }, patience)).toEqual({
        kind: 'abandoned',
      })
      expect(told).toEqual(['too late', 'in progress', 'in progress'])
    })

    test('but takes what is there by then', async () => {
      const { awaiting } = world({ status: 'rejected', reason: 'integrator_failed' })
      const outcome = await awaitDecision({ ...awaiting, cancel }, outOfTime)
      expect(outcome).toEqual({ kind: 'rejected', reason: 'integrator_failed' })
    })
  })

  test('does not wait for a server that is gone', async () => {
    const cancel = async () => Promise.reject(new NoValidResponse('gone'))
    const { awaiting } = world(pending)
    const outcome = await awaitDecision({ ...awaiting, cancel }, outOfTime)
    expect(outcome).toEqual({ kind: 'stopped', why: 'timed_out' })
  })
})

test('every end without credentials has a reason and words of its own', () => {
  const rejected = ['declined', 'closed', 'integrator_failed'].map((reason) => ({
    kind: 'rejected' as const,
    reason,
  }))
  const stopped = ['interrupted', 'timed_out'].map((why) => ({ kind: 'stopped' as const, why }))
  const others = (['expired', 'consumed', 'unknown', 'abandoned'] as const).map((kind) => ({
    kind,
  }))
  const failures = [...rejected, ...stopped, ...others].map(failureOf)
  expect(new Set(failures.map(({ message }) => message)).size).toBe(9)
  // Before and after somebody has approved, the time is over all the same.
  expect(new Set(failures.map(({ reason }) => reason)).size).toBe(8)
  const told = failureOf({ kind: 'rejected', reason: 'integrator_failed', problem: 'Status 500.' })
  expect(told.message).toContain('Status 500.')
  expect(outcomeOfPoll({ status: 'rejected' })).toEqual({ kind: 'rejected', reason: 'declined' })
})
