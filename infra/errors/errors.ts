import {
  type ErrorCode,
  errorTable,
  messageOf,
  type Placeholders,
  type PlainCode,
} from './error-table.ts'
import { type ErrorDetails, type FieldIssue, fieldsMessage } from './field-problem.ts'

export { type ErrorCode, errorCodes, errorTable, messageOf, type PlainCode } from './error-table.ts'
export type { ErrorDetails, FieldIssue } from './field-problem.ts'

interface ApiErrorOptions {
  message?: string
  details?: ErrorDetails
  headers?: Record<string, string>
  /** Default for `status` and `retryable`: the values in the error table. */
  status?: number
  retryable?: boolean
  cause?: unknown
}

/** An error for the API caller. It may be thrown anywhere; the app's error handler sends it as the error envelope. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly details: ErrorDetails | undefined
  readonly headers: Record<string, string>
  readonly status: number
  readonly retryable: boolean

  constructor(code: PlainCode, options?: ApiErrorOptions)
  /** For a message with placeholders use `filledError`. */
  constructor(code: ErrorCode, options: ApiErrorOptions & { message: string })
  constructor(code: ErrorCode, options: ApiErrorOptions = {}) {
    super(options.message ?? errorTable[code].message, { cause: options.cause })
    this.name = 'ApiError'
    this.code = code
    this.details = options.details
    this.headers = options.headers ?? {}
    this.status = options.status ?? errorTable[code].status
    this.retryable = options.retryable ?? errorTable[code].retryable ?? false
  }
}

/** Returns an ApiError with the code's message, its placeholders filled. */
export function filledError<Code extends ErrorCode>(
  code: Code,
  values: Readonly<Record<Placeholders<Code>, string>>,
  options: Omit<ApiErrorOptions, 'message'> = {},
): ApiError {
  return new ApiError(code, { ...options, message: messageOf(code, values) })
}

export type ValidationCode = 'request.validation_failed' | 'gate.validation_failed'

export const isValidationCode = (code: ErrorCode): code is ValidationCode =>
  code === 'request.validation_failed' || code === 'gate.validation_failed'

export function invalidField(
  field: FieldIssue,
  details: ErrorDetails = {},
  code: ValidationCode = 'request.validation_failed',
): ApiError {
  return invalidFields({ ...details, fields: [field] }, code)
}

/** Returns a 422 that lists every field; the message describes the first one. */
export const invalidFields = (
  details: ErrorDetails,
  code: ValidationCode = 'request.validation_failed',
): ApiError => filledError(code, { problem: fieldsMessage(details) }, { details })

/** Returns the 503 for a cancelled statement. A retry may succeed, most likely with a smaller query. */
export function queryTimeout(cause: unknown, retrySeconds = 1): ApiError {
  return new ApiError('service.unavailable', {
    message:
      'The request took too long and was cancelled. Try a shorter time range or other filters.',
    headers: { 'retry-after': String(retrySeconds) },
    cause,
  })
}

/** Returns the 503 for an unreachable or overloaded dependency. Nothing was acknowledged, so a retry is safe. */
export function unavailable(cause: unknown, retrySeconds = 1): ApiError {
  return new ApiError('service.unavailable', {
    headers: { 'retry-after': String(retrySeconds) },
    cause,
  })
}
