import { fieldSentences } from '../../../infra/errors/field-problem.ts'
import { toApiError } from '../../../infra/http/error-response.ts'
import { errorJson, errorText } from '../failure.ts'
import { NoValidResponse } from '../request-server.ts'
import { printable } from '../tables.ts'
import type { SignupOutcome } from './decision.ts'
import { printJsonEvent } from './report.ts'

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
      return outcome.reason === 'timed_out'
        ? new SignupFailed('timed_out', 'Nobody decided in time. The signup was cancelled.')
        : new SignupFailed('cancelled', 'The signup was cancelled.')
    case 'abandoned':
      return new SignupFailed(
        'timed_out',
        'A person approved the signup, but the service did not deliver credentials in time. It may still create the ' +
          'account, but its credentials are lost. Sign up again with a longer --timeout.',
      )
    case 'expired':
      return new SignupFailed(
        'expired',
        'Nobody decided within 15 minutes. Sign up again to retry.',
      )
    case 'consumed':
      return new SignupFailed('consumed', 'The credentials were already retrieved or have expired.')
    case 'unknown':
      return new SignupFailed('unknown', 'The server did not return an outcome of the signup.')
  }
}

function rejection({ reason, problem }: { reason: string; problem?: string }): SignupFailed {
  if (reason === 'closed') {
    const message =
      'The consent page was closed before a decision, which cancels the signup. Sign up again and keep the page open.'
    return new SignupFailed(reason, message)
  }
  if (reason === 'claim_failed') {
    const message = 'Five wrong codes were entered, which cancels the signup. Sign up again.'
    return new SignupFailed(reason, message)
  }
  if (reason !== 'integrator_failed') return new SignupFailed(reason, 'The signup was declined.')
  const ending = problem ? `: ${problem}` : '.'
  return new SignupFailed(
    reason,
    `The signup was approved, but the service did not deliver credentials${ending}`,
  )
}

const signupOptions = { account_name: '--account-name', metadata: '--metadata' }

/** Returns the text of the error. `options` maps its fields to the options that the text names instead. */
export function failureText(
  error: unknown,
  options: Record<string, string> = signupOptions,
): string {
  const { fields = [], ...details } = toApiError(error).details ?? {}
  const optionFields = fields.flatMap((field) => {
    const option = options[field.name.split('.')[0] ?? '']
    return option ? [{ ...field, name: option }] : []
  })
  // Falls back to the names of the fields if one of them has no option.
  if (fields.length === 0 || optionFields.length < fields.length) return errorText(error)
  return fieldSentences({ ...details, fields: optionFields }).join('\n')
}

/** Sets exit code 1 and prints the failure: a message on standard error, or one line of JSON on standard output. */
export function reportSignupFailure(error: unknown, { json }: { json: boolean }): void {
  process.exitCode = 1
  if (json) printJsonEvent('failed', failureJson(error))
  // Parts of the message come from a server, and could contain terminal escape sequences.
  else console.error(printable(failureText(error)))
}

function failureJson(error: unknown) {
  const reason = error instanceof SignupFailed ? { reason: error.reason } : {}
  const retry = error instanceof NoValidResponse && { retryable: true }
  return { ...reason, error: { ...errorJson(error), ...retry } }
}
