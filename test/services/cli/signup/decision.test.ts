import { describe, expect, test } from 'vitest'
import { ApiError } from '../../../../infra/errors/errors.ts'
import { NoValidResponse } from '../../../../services/cli/request-server.ts'
import {
  awaitDecision,
  type DecisionDeps,
  outcomeOfPoll,
  outcomeOfPollError,
} from '../../../../services/cli/signup/decision.ts'
import { failureOf } from '../../../../services/cli/signup/failure.ts'
import type { PolledSession } from '../../../../services/cli/signup/gate-api.ts'

const pending: PolledSession = { status: 'pending' }

/** Returns the poll results in turn and repeats the last one. Only sleeping advances the clock. */
function world(...results: (PolledSession | Error)[]) {
  let [time, polls] = [0, 0]
  const slept: number[] = []
  const calls: string[] = []
  const deps: DecisionDeps = {
    async poll() {
      const result = results[Math.min(polls++, results.length - 1)] ?? pending
      if (result instanceof Error) throw result
      return result
    },
    cancel: async () => void calls.push('cancel'),
    claim: async () => void calls.push('claim'),
    async sleep(ms) {
      slept.push(ms)
      time += ms
    },
    now: () => time,
    onWaiting: ({ inProgress, problem }) =>
      calls.push(problem ?? (inProgress ? 'in progress' : 'pending')),
    onTooLateToCancel: () => void calls.push('too late'),
  }
  return { deps, slept, calls, polls: () => polls }
}

const never = new AbortController().signal
const unstopped = { stop: never, timeUp: never }
const stoppedBy = (reason: string) => ({ stop: AbortSignal.abort(reason), timeUp: never })
const timedOut = { stop: AbortSignal.abort('timed_out'), timeUp: AbortSignal.abort('timed_out') }

describe('polling', () => {
  test('repeats every three seconds until a person decides', async () => {
    const { deps, slept, calls } = world(
      pending,
      { status: 'pending', approval: 'in_progress' },
      { status: 'rejected', reason: 'closed' },
    )
    expect(await awaitDecision(deps, unstopped)).toEqual({ kind: 'rejected', reason: 'closed' })
    expect([slept, calls]).toEqual([
      [3000, 3000],
      ['pending', 'in progress'],
    ])
  })

  test('sends the code for as long as the server waits for it', async () => {
    const claiming: PolledSession = { status: 'pending', claim: 'waiting' }
    const { deps, calls } = world(claiming, claiming, {
      status: 'rejected',
      reason: 'claim_failed',
    })
    const outcome = await awaitDecision(deps, unstopped)
    expect(calls).toEqual(['pending', 'claim', 'pending', 'claim'])
    expect(outcome.kind === 'rejected' && failureOf(outcome).message).toMatch(/Five wrong codes/)
  })

  test('stays below thirty polls a minute, and waits for Retry-After', async () => {
    const limited = (seconds: string) =>
      new ApiError('gate.rate_limit', { headers: { 'retry-after': seconds } })
    const { deps, slept } = world(limited('17'), limited('1'), limited('soon'), {
      status: 'expired',
    })
    expect(await awaitDecision(deps, unstopped)).toEqual({ kind: 'expired' })
    expect(slept).toEqual([17_000, 3000, 3000])
  })

  test('survives a short outage of the server, but not a long one', async () => {
    const short = world(new NoValidResponse('gone'), new ApiError('service.unavailable'), {
      status: 'expired',
    })
    expect(await awaitDecision(short.deps, unstopped)).toEqual({ kind: 'expired' })
    expect(short.calls[0]).toBe('gone')
    const long = world(new NoValidResponse('gone'))
    expect(await awaitDecision(long.deps, unstopped)).toEqual({ kind: 'unknown' })
    expect(long.polls()).toBeLessThan(20 * 20 + 5)
  })

  test.each([
    ['gate.session_expired', { kind: 'expired' }],
    ['gate.delivery_consumed', { kind: 'consumed' }],
  ] as const)('ends with %s', (code, outcome) => {
    expect(outcomeOfPollError(new ApiError(code))).toEqual(outcome)
  })

  test('ends with a permanent error', async () => {
    const { deps } = world(new ApiError('auth.invalid_api_key'))
    await expect(awaitDecision(deps, unstopped)).rejects.toThrow('key')
  })
})

describe('a stop', () => {
  test('cancels an undecided signup', async () => {
    const stop = new AbortController()
    const { deps, calls } = world(pending)
    const sleep = async () => stop.abort('interrupted')
    expect(await awaitDecision({ ...deps, sleep }, { stop: stop.signal, timeUp: never })).toEqual({
      kind: 'stopped',
      reason: 'interrupted',
    })
    expect(calls).toEqual(['pending', 'cancel'])
  })

  test('keeps waiting after an approval, because the credentials would be lost', async () => {
    const cancel = async () => Promise.reject(new ApiError('gate.approval_in_progress'))
    const { deps, calls } = world(
      { status: 'pending', approval: 'in_progress' },
      { status: 'rejected' },
    )
    const outcome = await awaitDecision({ ...deps, cancel }, stoppedBy('interrupted'))
    expect(outcome).toEqual({ kind: 'rejected', reason: 'declined' })
    expect(calls).toEqual(['too late', 'in progress'])
  })

  describe('after an approval, waits until the timeout', () => {
    const cancel = async () => Promise.reject(new ApiError('gate.approval_in_progress'))
    const inProgress: PolledSession = { status: 'pending', approval: 'in_progress' }

    test('and reports no further waiting', async () => {
      const { deps, calls } = world(inProgress)
      expect(await awaitDecision({ ...deps, cancel }, timedOut)).toEqual({ kind: 'abandoned' })
      expect(calls).toEqual([])
    })

    test('also after Ctrl-C', async () => {
      const { deps, calls, slept } = world(inProgress)
      const timeUp = new AbortController()
      const sleep = async (ms: number, stop: AbortSignal | undefined) => {
        await deps.sleep(ms, stop)
        if (slept.length === 2) timeUp.abort()
      }
      const signals = { stop: AbortSignal.abort('interrupted'), timeUp: timeUp.signal }
      expect(await awaitDecision({ ...deps, cancel, sleep }, signals)).toEqual({
        kind: 'abandoned',
      })
      expect(calls).toEqual(['too late', 'in progress', 'in progress'])
    })

    test('but returns an outcome that exists by then', async () => {
      const { deps } = world({ status: 'rejected', reason: 'integrator_failed' })
      const outcome = await awaitDecision({ ...deps, cancel }, timedOut)
      expect(outcome).toEqual({ kind: 'rejected', reason: 'integrator_failed' })
    })
  })

  test('does not wait for an unreachable server', async () => {
    const cancel = async () => Promise.reject(new NoValidResponse('gone'))
    const { deps } = world(pending)
    const outcome = await awaitDecision({ ...deps, cancel }, timedOut)
    expect(outcome).toEqual({ kind: 'stopped', reason: 'timed_out' })
  })
})

test('every failed outcome has its own reason and message', () => {
  const rejected = ['declined', 'closed', 'integrator_failed'].map((reason) => ({
    kind: 'rejected' as const,
    reason,
  }))
  const stopped = ['interrupted', 'timed_out'].map((reason) => ({
    kind: 'stopped' as const,
    reason,
  }))
  const others = (['expired', 'consumed', 'unknown', 'abandoned'] as const).map((kind) => ({
    kind,
  }))
  const failures = [...rejected, ...stopped, ...others].map(failureOf)
  expect(new Set(failures.map(({ message }) => message)).size).toBe(9)
  // A timeout before and after the approval has the same reason.
  expect(new Set(failures.map(({ reason }) => reason)).size).toBe(8)
  const failed = failureOf({
    kind: 'rejected',
    reason: 'integrator_failed',
    problem: 'Status 500.',
  })
  expect(failed.message).toContain('Status 500.')
  expect(outcomeOfPoll({ status: 'rejected' })).toEqual({ kind: 'rejected', reason: 'declined' })
})
