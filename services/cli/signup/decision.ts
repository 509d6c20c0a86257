import { ApiError } from '../../../infra/errors/errors.ts'
import { errorMessage } from '../../../infra/thrown.ts'
import { type ApprovedSession, type PolledSession, retryAfterMs } from './gate-api.ts'

// Thirty polls a minute are allowed.
const pollEveryMs = 3000
// By the clock of this machine; the server ends a session after fifteen.
const patienceMs = 20 * 60 * 1000

export type SignupOutcome =
  | { kind: 'approved'; session: ApprovedSession }
  | { kind: 'rejected'; reason: string; problem?: string }
  | { kind: 'stopped'; why: unknown }
  /** `abandoned`: decided by a person, and given up by the one who requested it, before the service answered. */
  | { kind: 'expired' | 'consumed' | 'unknown' | 'abandoned' }

export interface Waiting {
  kind: 'wait'
  ms: number
  inProgress: boolean
  /** A person has approved, and the code of the consent page is to be sent. */
  isClaiming?: boolean
  problem?: string
}

export function afterAnswer(polled: PolledSession): SignupOutcome | Waiting {
  if (polled.status === 'approved') return { kind: 'approved', session: polled }
  if (polled.status === 'expired') return { kind: 'expired' }
  if (polled.status === 'pending')
    return {
      kind: 'wait',
      ms: pollEveryMs,
      inProgress: polled.approval === 'in_progress',
      isClaiming: polled.claim === 'waiting',
    }
  const { reason = 'declined', problem } = polled
  return { kind: 'rejected', reason, ...(problem !== undefined && { problem }) }
}

export function afterFailure(error: unknown): SignupOutcome | Waiting {
  if (error instanceof ApiError && error.code === 'gate.session_expired') return { kind: 'expired' }
  if (error instanceof ApiError && error.code === 'gate.delivery_consumed')
    return { kind: 'consumed' }
  const ms = retryAfterMs(error, pollEveryMs)
  if (ms === undefined) throw error
  return {
    kind: 'wait',
    ms: Math.max(ms, pollEveryMs),
    inProgress: false,
    problem: errorMessage(error),
  }
}

export interface Awaiting {
  poll(): Promise<PolledSession>
  /** Rejects with ApiError 409 when it is too late. */
  cancel(): Promise<void>
  /** Sends the code of the consent page if a person has typed it. */
  claim(): Promise<void>
  sleep(ms: number, stop: AbortSignal | undefined): Promise<void>
  now(): number
  onWaiting(waiting: Waiting): void
  /** Called once when it is to stop but was decided already, so that its credentials are waited for. */
  onTooLate(): void
}

export interface Patience {
  /** Aborted when it is to stop; with the reason 'timed_out' when `timeUp` is, too. */
  stop: AbortSignal
  timeUp: AbortSignal
}

/**
 * Polls until the signup is decided. When it is to stop before, the signup is cancelled; one that a person has approved
 * already is waited for until the time is up.
 */
export async function awaitDecision(
  awaiting: Awaiting,
  { stop, timeUp }: Patience,
): Promise<SignupOutcome> {
  const until = awaiting.now() + patienceMs
  let tooLate = false
  for (;;) {
    if (stop.aborted && !tooLate) {
      if (await isCancelled(awaiting)) return { kind: 'stopped', why: stop.reason }
      tooLate = true
      if (!timeUp.aborted) awaiting.onTooLate()
    }
    const next = await awaiting.poll().then(afterAnswer, afterFailure)
    if (next.kind !== 'wait') return next
    if (tooLate && timeUp.aborted) return { kind: 'abandoned' }
    if (awaiting.now() > until) return { kind: 'unknown' }
    awaiting.onWaiting(next)
    if (next.isClaiming) await awaiting.claim()
    await awaiting.sleep(next.ms, tooLate ? timeUp : stop)
  }
}

// Without an answer it counts as cancelled, because a signup that nobody decides ends by itself.
async function isCancelled({ cancel }: Awaiting): Promise<boolean> {
  return cancel().then(
    () => true,
    (error: unknown) => !(error instanceof ApiError && [409, 410, 429].includes(error.status)),
  )
}
