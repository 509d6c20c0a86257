import { errorJson, errorText } from '../operator/failure.ts'
import { printable } from '../operator/tables.ts'
import type { Outcome } from './decision.ts'

/** A signup that ended without credentials. */
export class SignupFailed extends Error {
  override name = 'SignupFailed'
  /** In one word, for programs. */
  readonly reason: string

  constructor(reason: string, message: string) {
    super(message)
    this.reason = reason
  }
}

/** What to say of a signup that did not bring credentials. */
export function failureOf(outcome: Exclude<Outcome, { kind: 'approved' }>): SignupFailed {
  switch (outcome.kind) {
    case 'rejected':
      return rejection(outcome)
    case 'stopped':
      return outcome.why === 'timed_out'
        ? new SignupFailed('timed_out', 'Nobody decided in time. The signup was cancelled.')
        : new SignupFailed('cancelled', 'The signup was cancelled.')
    case 'expired':
      return new SignupFailed('expired', 'Nobody decided within 15 minutes. Start again to ask again.')
    case 'consumed':
      return new SignupFailed('consumed', 'The credentials were picked up already, or waited too long.')
    case 'unknown':
      return new SignupFailed('unknown', 'The server did not say how the signup ended.')
  }
}

function rejection({ reason, problem }: { reason: string; problem?: string }): SignupFailed {
  if (reason === 'closed') return new SignupFailed(reason, 'The consent page was closed without a decision.')
  if (reason !== 'integrator_failed') return new SignupFailed(reason, 'The signup was declined.')
  const why = problem ? `: ${problem}` : '.'
  return new SignupFailed(reason, `It was approved, but the service gave out no credentials${why}`)
}

/** Ends the process with code 1: a message on standard error, or one line of JSON on standard output. */
export function tellSignupFailure(error: unknown, { json }: { json: boolean }): void {
  process.exitCode = 1
  const reason = error instanceof SignupFailed ? { reason: error.reason } : {}
  if (json) console.log(JSON.stringify({ event: 'failed', ...reason, error: errorJson(error) }))
  // Servers have a say in it.
  else console.error(printable(errorText(error)))
}
