import { type Command, CommanderError } from 'commander'
import { type ApiError, type ErrorDetails, isValidationCode } from '../../infra/errors/errors.ts'
import { fieldSentences } from '../../infra/errors/field-problem.ts'
import { toApiError } from '../../infra/http/error-response.ts'
import { LogUnavailable } from '../../infra/log/port.ts'
import { isConnectionError } from '../../infra/postgres/pool.ts'
import { errorMessage, systemCode } from '../../infra/thrown.ts'
import { redactKeys } from './usage.ts'

/**
 * Sets exit code 1 and prints the error: as text on standard error, or as `{ "error": ... }` on standard output. Keys that
 * the error may quote from the arguments are redacted.
 */
export function reportFailure(
  error: unknown,
  { json, textOf = plainMessage }: { json: boolean; textOf?: (error: unknown) => string },
): void {
  process.exitCode = 1
  if (json) console.log(redactKeys(JSON.stringify({ error: errorJson(error) }, null, 2)))
  else console.error(redactKeys(textOf(error)))
}

const fileProblems: Record<string, string> = {
  ENOENT: 'no such file or folder',
  EACCES: 'permission denied',
  EEXIST: 'the file already exists',
  EISDIR: 'it is a folder, not a file',
  ENOTDIR: 'a part of the path is not a folder',
  ENOSPC: 'the disk is full',
  EROFS: 'the disk is read-only',
}

/** Returns the error's message; for file system errors, the file and the problem. */
function plainMessage(error: unknown): string {
  const { path: file } = Object(error)
  const problem = fileProblems[systemCode(error) ?? '']
  return problem && typeof file === 'string' ? `${file}: ${problem}` : errorMessage(error)
}

interface ErrorJson {
  /**
   * Error code of the API, `command.usage` for invalid arguments, or `command.failed` for errors outside of API requests,
   * such as invalid settings.
   */
  code: string
  message: string
  status?: number
  retryable: boolean
  details?: ErrorDetails
}

const unreachableText =
  'Cannot reach the database or the log, so the outcome is unknown. Check DATABASE_URL and KAFKA_BROKERS.'
const unconfirmedText =
  'The command was not confirmed in time. A server with the role `projections` must run on the same database and ' +
  'log, because it updates the read models (see its /readyz). The command may have succeeded: check with the ' +
  'matching list command before you repeat it.'

export function errorJson(thrown: unknown): ErrorJson {
  if (thrown instanceof CommanderError)
    return { code: 'command.usage', message: redactKeys(usageOf(thrown)), retryable: false }
  const error = toApiError(thrown)
  const { code, status, retryable, details } = error
  const message = messageOf(error)
  if (code === 'internal.error') return { code: 'command.failed', message, retryable: false }
  return { code, message, status, retryable, ...(details && { details }) }
}

function usageOf({ code, message }: CommanderError): string {
  // Commander prints help instead of a message.
  if (code === 'commander.help') return 'No command given; see --help.'
  return message.replace(/^error: /, '')
}

/** Returns the message, or a line per invalid field that names the command's option instead of the field. */
export function errorText(thrown: unknown, command?: Command): string {
  const error = toApiError(thrown)
  const { fields = [], allowed_values: allowed = [] } = error.details ?? {}
  const optionFields = fields.map((field) => ({ ...field, name: optionOf(field.name, command) }))
  const sentences = fieldSentences({ ...error.details, fields: optionFields }).map((sentence) =>
    sentence.replace('details.allowed_values', 'these'),
  )
  const lines =
    isValidationCode(error.code) && sentences.length > 0 ? sentences : [messageOf(error)]
  const isListed = lines.some((line) => line.includes(allowed.join(', ')))
  return [...lines, ...(isListed ? [] : [`possible values: ${allowed.join(', ')}`])].join('\n')
}

// Options whose name differs from the API's field.
const optionNames = new Map([
  ['allowed_origins', 'origins'],
  ['session_days', 'sessions'],
  ['decision_days', 'decisions'],
  ['visitor_days', 'visitors'],
  ['webhook_days', 'webhooks'],
  ['facts_topic', 'facts'],
  ['secret_limit', 'secret'],
  ['publishable_limit', 'publishable'],
  ['domain', 'add'],
])

/** Returns the option for a field, such as `--origins` for `allowed_origins.0`, or the field if there is none. */
function optionOf(field: string, command: Command | undefined): string {
  const [name = ''] = field.split('.', 1)
  const flag = `--${(optionNames.get(name) ?? name).replaceAll('_', '-')}`
  return command?.options.some(({ long }) => long === flag) ? flag : field
}

function messageOf({ code, message, cause }: ApiError): string {
  const reason = cause instanceof Error ? plainMessage(cause) : undefined
  if (code === 'service.unavailable') {
    const problem =
      isConnectionError(cause) || cause instanceof LogUnavailable
        ? unreachableText
        : unconfirmedText
    return reason ? `${problem} (${reason})` : problem
  }
  // Unlike API callers, operators may see internal causes.
  return code === 'internal.error' && reason ? reason : message
}
