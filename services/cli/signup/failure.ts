import { fieldSentences } from '../../../infra/errors/field-problem.ts'
import { toApiError } from '../../../infra/http/error-response.ts'
import { NoAnswer } from '../ask-server.ts'
import { errorJson, errorText } from '../failure.ts'
import { printable } from '../tables.ts'
import type { SignupOutcome } from './decision.ts'
import { printEvent } from './report.ts'

export class SignupFailed extends Error {
  override name = 'SignupFailed'
  readonly reason: string

  constructor(reason: string, message: string) {
    super(message)
    this.reason = reason
  }
}

export function failureOf(outcome: Exclude<SignupOutcome, { kind: 'approved' }>): SignupFailed {
  switch (outcome.kind) {
    case 'rejected':
      return rejection(outcome)
    case 'stopped':
      return outcome.why === 'timed_out'
        ? new SignupFailed('timed_out', 'Nobody decided in time. The signup was cancelled.')
        : new SignupFailed('cancelled', 'The signup was cancelled.')
    case 'abandoned':
      return new SignupFailed(
        'timed_out',
        'A person has approved it, but the service gave out no credentials in time. The account may still be made; ' +
          'its credentials are lost then. Sign up again with more time for another.',
      )
    case 'expired':
      return new SignupFailed(
        'expired',
        'Nobody decided within 15 minutes. Start again to ask again.',
      )
    case 'consumed':
      return new SignupFailed(
        'consumed',
        'The credentials were picked up already, or waited too long.',
      )
    case 'unknown':
      return new SignupFailed('unknown', 'The server did not say how the signup ended.')
  }
}

function rejection({ reason, problem }: { reason: string; problem?: string }): SignupFailed {
  if (reason === 'closed') {
    const message =
      'The consent page was closed without a decision, which ends the signup. Sign up again, and leave the page open.'
    return new SignupFailed(reason, message)
  }
  if (reason === 'claim_failed') {
    const message = 'Five wrong codes were told, which ends the signup. Sign up again.'
    return new SignupFailed(reason, message)
  }
  if (reason !== 'integrator_failed') return new SignupFailed(reason, 'The signup was declined.')
  const why = problem ? `: ${problem}` : '.'
  return new SignupFailed(reason, `It was approved, but the service gave out no credentials${why}`)
}

const signupOptions = { account_name: '--account-name', metadata: '--metadata' }

export function failureText(
  error: unknown,
  options: Record<string, string> = signupOptions,
): string {
  const { fields = [], ...details } = toApiError(error).details ?? {}
  const named = fields.flatMap((field) => {
    const option = options[field.name.split('.')[0] ?? '']
    return option ? [{ ...field, name: option }] : []
  })
  // A field that no option sets is only named by the message.
  if (fields.length === 0 || named.length < fields.length) return errorText(error)
  return fieldSentences({ ...details, fields: named }).join('\n')
}

/** Ends the process with code 1: a message on standard error, or one line of JSON on standard output. */
export function tellSignupFailure(error: unknown, { json }: { json: boolean }): void {
  process.exitCode = 1
  if (json) printEvent('failed', failureJson(error))
  // Parts of it come from a server, which must not steer the terminal.
  else console.error(printable(failureText(error)))
}

function failureJson(error: unknown) {
  const reason = error instanceof SignupFailed ? { reason: error.reason } : {}
  const isLater = error instanceof NoAnswer && { retryable: true }
  return { ...reason, error: { ...errorJson(error), ...isLater } }
}
