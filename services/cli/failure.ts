import { type Command, CommanderError } from 'commander'
import { type ApiError, type ErrorDetails, isValidationCode } from '../../infra/errors/errors.ts'
import { fieldSentences } from '../../infra/errors/field-problem.ts'
import { toApiError } from '../../infra/http/error-response.ts'
import { LogUnavailable } from '../../infra/log/port.ts'
import { isConnectionError } from '../../infra/postgres/pool.ts'
import { errorMessage, systemCode } from '../../infra/thrown.ts'
import { withoutKeys } from './usage.ts'

/**
 * Ends the process with code 1 and says why: the text on standard error, or `{ "error": ... }` on standard output.
 * A key among the arguments, which the error may quote, is not repeated there.
 */
export function reportFailure(
  error: unknown,
  { json, textOf = plainMessage }: { json: boolean; textOf?: (error: unknown) => string },
): void {
  process.exitCode = 1
  if (json) console.log(withoutKeys(JSON.stringify({ error: errorJson(error) }, null, 2)))
  else console.error(withoutKeys(textOf(error)))
}

const fileProblems: Record<string, string> = {
  ENOENT: 'no such file or folder',
  EACCES: 'permission denied',
  EEXIST: 'it exists already',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is not a folder',
  ENOSPC: 'the disk is full',
  EROFS: 'the disk is read-only',
}

/** Returns the message; of an error of the file system the file and what is wrong with it. */
function plainMessage(error: unknown): string {
  const { path: file } = Object(error)
  const problem = fileProblems[systemCode(error) ?? '']
  return problem && typeof file === 'string' ? `${file}: ${problem}` : errorMessage(error)
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

/** The message, or a line for each field that is wrong, which is called as the command's option for it. */
export function errorText(thrown: unknown, command?: Command): string {
  const error = toApiError(thrown)
  const { fields = [], allowed_values: allowed = [] } = error.details ?? {}
  const named = fields.map((field) => ({ ...field, name: optionOf(field.name, command) }))
  const sentences = fieldSentences({ ...error.details, fields: named }).map((sentence) =>
    sentence.replace('details.allowed_values', 'these'),
  )
  const lines =
    isValidationCode(error.code) && sentences.length > 0 ? sentences : [explained(error)]
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

/** `--origins` for `allowed_origins.0`, where the command has such an option. */
function optionOf(field: string, command: Command | undefined): string {
  const [name = ''] = field.split('.', 1)
  const flag = `--${(optionNames.get(name) ?? name).replaceAll('_', '-')}`
  return command?.options.some(({ long }) => long === flag) ? flag : field
}

function explained({ code, message, cause }: ApiError): string {
  const reason = cause instanceof Error ? plainMessage(cause) : undefined
  if (code === 'service.unavailable') {
    const what = isConnectionError(cause) || cause instanceof LogUnavailable ? away : notConfirmed
    return reason ? `${what} (${reason})` : what
  }
  // Whoever runs an operator's command may know what a caller of the API may not.
  return code === 'internal.error' && reason ? reason : message
}
