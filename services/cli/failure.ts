import { CommanderError } from 'commander'
import type { ApiError, ErrorDetails } from '../../infra/errors/errors.ts'
import { toApiError } from '../../infra/http/error-response.ts'
import { LogUnavailable } from '../../infra/log/port.ts'
import { isConnectionError } from '../../infra/postgres/pool.ts'
import { withoutKeys } from './usage.ts'

interface Telling {
  json: boolean
  // As a line `{ "event": "failed", "error": ... }`, where the command prints events.
  events: boolean
}

/** Ends the process with code 1 and says why: a message on standard error, or `{ "error": ... }` on standard output. */
export function tellFailure(error: unknown, { json, events }: Telling): void {
  if (isHelp(error)) return
  process.exitCode = 1
  if (json && events) console.log(withoutKeys(JSON.stringify({ event: 'failed', error: errorJson(error) })))
  else if (json) console.log(withoutKeys(JSON.stringify({ error: errorJson(error) }, null, 2)))
  else console.error(error instanceof Error ? error.message : error)
}

// Help or the version that was asked for: thrown too, once it is printed.
function isHelp(error: unknown): boolean {
  return error instanceof Error && 'exitCode' in error && error.exitCode === 0
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
    return { code: 'command.usage', message: usageOf(thrown), retryable: false }
  const error = toApiError(thrown)
  const { code, status, retryable, details } = error
  if (code === 'internal.error')
    return { code: 'command.failed', message: messageOf(error), retryable: false }
  return { code, message: messageOf(error), status, retryable, ...(details && { details }) }
}

function usageOf({ code, message }: CommanderError): string {
  // Commander prints help instead of a message.
  if (code === 'commander.help') return 'A command is missing; see --help.'
  return message.replace(/^error: /, '')
}

export function errorText(thrown: unknown): string {
  const error = toApiError(thrown)
  const { fields = [], allowed_values: allowed = [] } = error.details ?? {}
  const expected = fields.flatMap((field) =>
    field.expected ? [`  ${field.name}: expected ${field.expected}`] : [],
  )
  const values = allowed.length > 0 ? [`  possible values: ${allowed.join(', ')}`] : []
  return [messageOf(error), ...expected, ...values].join('\n')
}

function messageOf({ code, message, cause }: ApiError): string {
  const reason = cause instanceof Error ? cause.message : undefined
  if (code === 'service.unavailable') {
    const what = isConnectionError(cause) || cause instanceof LogUnavailable ? away : notConfirmed
    return reason ? `${what} (${reason})` : what
  }
  // Whoever gives an operator's command may know what a caller of the API is not told.
  return code === 'internal.error' && reason ? reason : message
}
