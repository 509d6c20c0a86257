import { CommanderError } from 'commander'
import type { ApiError, ErrorDetails } from '../../infra/errors/errors.ts'
import { toApiError } from '../../infra/http/error-response.ts'
import { LogUnavailable } from '../../infra/log/port.ts'
import { isConnectionError } from '../../infra/postgres/pool.ts'
import { errorMessage } from '../../infra/thrown.ts'
import { withoutKeys } from './usage.ts'

/**
 * Ends the process with code 1 and says why: the text on standard error, or `{ "error": ... }` on standard output.
 * A key among the arguments, which the error may quote, is not repeated there.
 */
export function reportFailure(
  error: unknown,
  { json, textOf = errorMessage }: { json: boolean; textOf?: (error: unknown) => string },
): void {
  process.exitCode = 1
  if (json) console.log(withoutKeys(JSON.stringify({ error: errorJson(error) }, null, 2)))
  else console.error(textOf(error))
}

interface ErrorJson {
  /**
   * One of the API's, `command.usage` for arguments that cannot be read, or `command.failed` for what no request
   * could meet, as settings that are not valid.
   */
  code: string
  message: string
  status?: number
  retryable: boolean
  details?: ErrorDetails
}

const away =
  'The database or the log does not answer. Nothing was confirmed; see DATABASE_URL and KAFKA_BROKERS.'
const notConfirmed =
  'It was not confirmed in time. The read models are kept by a running server: one with the role `projections` ' +
  'must run on the same database and log (see its /readyz). The command may have been carried out all the same: ' +
  'list what there is before you repeat it.'

export function errorJson(thrown: unknown): ErrorJson {
  if (thrown instanceof CommanderError)
    return { code: 'command.usage', message: withoutKeys(usageOf(thrown)), retryable: false }
  const error = toApiError(thrown)
  const { code, status, retryable, details } = error
  const message = explained(error)
  if (code === 'internal.error') return { code: 'command.failed', message, retryable: false }
  return { code, message, status, retryable, ...(details && { details }) }
}

function usageOf({ code, message }: CommanderError): string {
  // Commander prints help instead of a message.
  if (code === 'commander.help') return 'A command is missing; see --help.'
  return message.replace(/^error: /, '')
}

/** The message, and a line for each field or set of values that was expected. */
export function errorText(thrown: unknown): string {
  const error = toApiError(thrown)
  const { fields = [], allowed_values: allowed = [] } = error.details ?? {}
  const expected = fields.flatMap((field) =>
    field.expected ? [`  ${field.name}: expected ${field.expected}`] : [],
  )
  const values = allowed.length > 0 ? [`  possible values: ${allowed.join(', ')}`] : []
  return [explained(error), ...expected, ...values].join('\n')
}

function explained({ code, message, cause }: ApiError): string {
  const reason = cause instanceof Error ? cause.message : undefined
  if (code === 'service.unavailable') {
    const what = isConnectionError(cause) || cause instanceof LogUnavailable ? away : notConfirmed
    return reason ? `${what} (${reason})` : what
  }
  // Whoever runs an operator's command may know what a caller of the API may not.
  return code === 'internal.error' && reason ? reason : message
}
