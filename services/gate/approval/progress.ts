import { type DirectSchedule, nextDirectAttempt } from '../../../infra/wire/webhooks/direct-call.ts'
import type { DeliveryRow } from '../../../projections/webhooks/tables.ts'
import type { StartedSession } from './finish-approval.ts'

/** How far asking a service has come. */
export interface Progress extends DirectSchedule {
  /** Of the next attempt. */
  number: number
  /** Of the last one. */
  problem: string | null
}

/** An answer that came in time and got lost in a crash may be asked for so long after the session's end. */
const lostAnswerMs = 15 * 60 * 1000
/** Who approves at the last moment has the service asked once, at least. */
const slackMs = 2000

/** As the read model of webhooks has it: whoever goes on after a crash begins with the attempt that it interrupted. */
export function progressOf(
  { status, attempts, updated_at: since, error: problem }: DeliveryRow,
  { session, timeoutMs }: { session: StartedSession; timeoutMs: number },
): Progress {
  const deadline = deadlineOf(session, timeoutMs)
  if (status === 'succeeded') {
    // The same attempt once more, and now: the schedule begins anew.
    return { number: attempts, attempts: 0, since, timeoutMs, deadline: deadline + lostAnswerMs, problem }
  }
  return { number: attempts + 1, attempts, since, timeoutMs, deadline, problem }
}

function deadlineOf({ expires_at, approval_started_at }: StartedSession, timeoutMs: number): number {
  return Math.max(expires_at, approval_started_at + timeoutMs + slackMs)
}

/** When nothing but the end is left of an approval that could not be finished, whatever the reason. */
export function overdueAt(session: StartedSession, timeoutMs: number): number {
  return deadlineOf(session, timeoutMs) + lostAnswerMs + slackMs
}

/** As nextDirectAttempt, for an attempt that should have begun while nobody was there to make it. */
export function nextFrom(schedule: DirectSchedule, now: number) {
  const next = nextDirectAttempt(schedule)
  if (!next || next.at >= now) return next
  const waited = next.at - schedule.since
  return nextDirectAttempt({ ...schedule, since: now - waited })
}
