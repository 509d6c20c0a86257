import { ApiError } from '../../../infra/http/errors.ts'
import { type ApprovedSession, type PolledSession, retryAfterMs } from './gate-api.ts'

/** Thirty polls a minute are allowed. */
const pollEveryMs = 3000
/** By the clock of this machine; the server ends a session after fifteen. */
const patienceMs = 20 * 60 * 1000

/** How a signup ended. */
export type Outcome =
  | { kind: 'approved'; session: ApprovedSession }
  | { kind: 'rejected'; reason: string; problem?: string }
  /** By the one who asked for it: `why` is the reason of the signal. */
  | { kind: 'stopped'; why: unknown }
  | { kind: 'expired' | 'consumed' | 'unknown' }

interface Waiting {
  kind: 'wait'
  ms: number
  /** A person has approved, and the service is asked for credentials. */
  inProgress: boolean
  /** Why nothing is known. */
  problem?: string
}

/** What follows from an answer to a poll. */
export function afterAnswer(polled: PolledSession): Outcome | Waiting {
  if (polled.status === 'approved') return { kind: 'approved', session: polled }
  if (polled.status === 'expired') return { kind: 'expired' }
  if (polled.status === 'pending')
    return { kind: 'wait', ms: pollEveryMs, inProgress: polled.approval === 'in_progress' }
  const { reason = 'declined', problem } = polled
  return { kind: 'rejected', reason, ...(problem !== undefined && { problem }) }
}

/** What follows from a poll that failed. Throws what no other poll could mend. */
export function afterFailure(error: unknown): Outcome | Waiting {
  if (error instanceof ApiError && error.code === 'gate.session_expired') return { kind: 'expired' }
  if (error instanceof ApiError && error.code === 'gate.delivery_consumed') return { kind: 'consumed' }
  const ms = retryAfterMs(error, pollEveryMs)
  if (ms === undefined) throw error
  const problem = error instanceof Error ? error.message : String(error)
  return { kind: 'wait', ms: Math.max(ms, pollEveryMs), inProgress: false, problem }
}

export interface Awaiting {
  poll(): Promise<PolledSession>
  /** Rejects with ApiError 409 when it is too late. */
  cancel(): Promise<void>
  /** Resolves after the time or when the signal is aborted; never rejects. */
  sleep(ms: number, stop: AbortSignal | undefined): Promise<void>
  /** Epoch milliseconds. */
  now(): number
  onWaiting(waiting: Waiting): void
  /** Nobody wants to wait any longer, but the signup was decided and goes on. */
  onTooLate(): void
}

/** Polls until the signup is decided. When the signal is aborted before, it is cancelled. */
export async function awaitDecision(awaiting: Awaiting, signal: AbortSignal): Promise<Outcome> {
  const until = awaiting.now() + patienceMs
  let stop: AbortSignal | undefined = signal
  for (;;) {
    if (stop?.aborted) {
      if (await isCancelled(awaiting)) return { kind: 'stopped', why: stop.reason }
      awaiting.onTooLate()
      stop = undefined
    }
    const next = await awaiting.poll().then(afterAnswer, afterFailure)
    if (next.kind !== 'wait') return next
    if (awaiting.now() > until) return { kind: 'unknown' }
    awaiting.onWaiting(next)
    await awaiting.sleep(next.ms, stop)
  }
}

/** Without an answer it counts as cancelled: it ends by itself. */
async function isCancelled({ cancel }: Awaiting): Promise<boolean> {
  return cancel().then(
    () => true,
    (error: unknown) => !(error instanceof ApiError && (error.status === 409 || error.status === 410)),
  )
}
