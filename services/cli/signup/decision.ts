import { ApiError } from '../../../infra/errors/errors.ts'
import { errorMessage } from '../../../infra/thrown.ts'
import { type ApprovedSession, type PolledSession, retryAfterMs } from './gate-api.ts'

// The server allows 30 polls a minute.
const pollIntervalMs = 3000
// By this machine's clock; the server expires a session after 15 minutes.
const giveUpAfterMs = 20 * 60 * 1000

export type SignupOutcome =
  | { kind: 'approved'; session: ApprovedSession }
  | { kind: 'rejected'; reason: string; problem?: string }
  | { kind: 'stopped'; why: unknown }
  /** `abandoned`: approved, but the requester stopped before the service delivered. */
  | { kind: 'expired' | 'consumed' | 'unknown' | 'abandoned' }

export interface PendingDecision {
  kind: 'wait'
  ms: number
  inProgress: boolean
  /** A person has approved, and the server waits for the code of the consent page. */
  isClaiming?: boolean
  problem?: string
}

export function outcomeOfPoll(polled: PolledSession): SignupOutcome | PendingDecision {
  if (polled.status === 'approved') return { kind: 'approved', session: polled }
  if (polled.status === 'expired') return { kind: 'expired' }
  if (polled.status === 'pending')
    return {
      kind: 'wait',
      ms: pollIntervalMs,
      inProgress: polled.approval === 'in_progress',
      isClaiming: polled.claim === 'waiting',
    }
  const { reason = 'declined', problem } = polled
  return { kind: 'rejected', reason, ...(problem !== undefined && { problem }) }
}

export function outcomeOfPollError(error: unknown): SignupOutcome | PendingDecision {
  if (error instanceof ApiError && error.code === 'gate.session_expired') return { kind: 'expired' }
  if (error instanceof ApiError && error.code === 'gate.delivery_consumed')
    return { kind: 'consumed' }
  const ms = retryAfterMs(error, pollIntervalMs)
  if (ms === undefined) throw error
  return {
    kind: 'wait',
    ms: Math.max(ms, pollIntervalMs),
    inProgress: false,
    problem: errorMessage(error),
  }
}

export interface DecisionDeps {
  poll(): Promise<PolledSession>
  /** Rejects with an ApiError, such as 409, if the signup can no longer be canceled. */
  cancel(): Promise<void>
  /** Sends the code of the consent page if a person has typed it. */
  claim(): Promise<void>
  sleep(ms: number, stop: AbortSignal | undefined): Promise<void>
  now(): number
  onWaiting(waiting: PendingDecision): void
  /** Called once if a stop comes after the approval: the signup keeps waiting for its credentials. */
  onTooLate(): void
}

export interface StopSignals {
  /** Aborted by Ctrl-C or by the timeout, then with the reason 'timed_out'. */
  stop: AbortSignal
  /** Aborted by the timeout only. */
  timeUp: AbortSignal
}

/**
 * Polls until the signup is decided, and returns the outcome. A stop cancels a pending signup; if a person has already
 * approved it, polling continues until the timeout.
 */
export async function awaitDecision(
  deps: DecisionDeps,
  { stop, timeUp }: StopSignals,
): Promise<SignupOutcome> {
  const deadline = deps.now() + giveUpAfterMs
  let tooLate = false
  for (;;) {
    if (stop.aborted && !tooLate) {
      if (await tryCancel(deps)) return { kind: 'stopped', why: stop.reason }
      tooLate = true
      if (!timeUp.aborted) deps.onTooLate()
    }
    const next = await deps.poll().then(outcomeOfPoll, outcomeOfPollError)
    if (next.kind !== 'wait') return next
    if (tooLate && timeUp.aborted) return { kind: 'abandoned' }
    if (deps.now() > deadline) return { kind: 'unknown' }
    deps.onWaiting(next)
    if (next.isClaiming) await deps.claim()
    await deps.sleep(next.ms, tooLate ? timeUp : stop)
  }
}

// Returns false if the server refuses because the signup is decided. Other failures count as canceled, because a signup
// that is left alone expires.
async function tryCancel({ cancel }: DecisionDeps): Promise<boolean> {
  return cancel().then(
    () => true,
    (error: unknown) => !(error instanceof ApiError && [409, 410, 429].includes(error.status)),
  )
}
