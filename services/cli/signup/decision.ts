import { ApiError } from '../../../infra/errors/errors.ts'
import { errorMessage } from '../../../infra/thrown.ts'
import { type ApprovedSession, type PolledSession, retryAfterMs } from './gate-api.ts'

// The server allows 30 polls a minute.
const pollIntervalMs = 3000
// The server expires sessions after 15 minutes, so this only matters if the server doesn't report that.
const maxWaitMs = 20 * 60 * 1000

export type SignupOutcome =
  | { kind: 'approved'; session: ApprovedSession }
  | { kind: 'rejected'; reason: string; problem?: string }
  | { kind: 'stopped'; reason: unknown }
  /** `abandoned`: approved, but the timeout ended before the service delivered. */
  | { kind: 'expired' | 'consumed' | 'unknown' | 'abandoned' }

export interface PendingDecision {
  kind: 'wait'
  ms: number
  inProgress: boolean
  /** True if a person has approved, and the server waits for the code from the consent page. */
  isClaiming?: boolean
  problem?: string
}

/** Returns the outcome of the signup, or how long to wait before the next poll. */
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

/** Returns the outcome, or how long to wait if the poll can be retried. Rethrows all other errors. */
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
  /** Sends the code from the consent page if a person has typed it. */
  claim(): Promise<void>
  sleep(ms: number, stop: AbortSignal | undefined): Promise<void>
  now(): number
  onWaiting(waiting: PendingDecision): void
  /** Called once if the signup is stopped after the approval. Polling continues, to receive the credentials. */
  onTooLateToCancel(): void
}

export interface StopSignals {
  /** Aborted by Ctrl-C, or by the timeout with the reason 'timed_out'. */
  stop: AbortSignal
  /** Aborted only by the timeout. */
  timeUp: AbortSignal
}

/**
 * Polls until the signup is decided, and returns the outcome. `stop` cancels a pending signup; if a person has already
 * approved it, polling continues until `timeUp`.
 */
export async function awaitDecision(
  deps: DecisionDeps,
  { stop, timeUp }: StopSignals,
): Promise<SignupOutcome> {
  const deadline = deps.now() + maxWaitMs
  let tooLateToCancel = false
  for (;;) {
    if (stop.aborted && !tooLateToCancel) {
      if (await tryCancel(deps)) return { kind: 'stopped', reason: stop.reason }
      tooLateToCancel = true
      if (!timeUp.aborted) deps.onTooLateToCancel()
    }
    const next = await deps.poll().then(outcomeOfPoll, outcomeOfPollError)
    if (next.kind !== 'wait') return next
    if (tooLateToCancel && timeUp.aborted) return { kind: 'abandoned' }
    if (deps.now() > deadline) return { kind: 'unknown' }
    deps.onWaiting(next)
    if (next.isClaiming) await deps.claim()
    await deps.sleep(next.ms, tooLateToCancel ? timeUp : stop)
  }
}

// Returns false if the signup is already decided. Ignores other failures, because a pending signup expires by itself.
async function tryCancel({ cancel }: DecisionDeps): Promise<boolean> {
  return cancel().then(
    () => true,
    (error: unknown) => !(error instanceof ApiError && [409, 410, 429].includes(error.status)),
  )
}
