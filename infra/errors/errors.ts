import {
  type ErrorCode,
  errorTable,
  messageOf,
  type Places,
  type PlainCode,
} from './error-table.ts'
import { type ErrorDetails, type FieldIssue, fieldsMessage } from './field-problem.ts'

export { type ErrorCode, errorCodes, errorTable, messageOf, type PlainCode } from './error-table.ts'
export type { ErrorDetails, FieldIssue } from './field-problem.ts'

interface ApiErrorOptions {
  message?: string
  details?: ErrorDetails
  headers?: Record<string, string>
  /** Default, as for `retryable`: what the table says of the code. */
  status?: number
  retryable?: boolean
  cause?: unknown
}

/** A refusal that is answered to the caller. It may be thrown anywhere, and becomes the error envelope in one place. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly details: ErrorDetails | undefined
  readonly headers: Record<string, string>
  readonly status: number
  readonly retryable: boolean

  constructor(code: PlainCode, options?: ApiErrorOptions)
  /** `filledError` fills the places of a message. */
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

export function filledError<Code extends ErrorCode>(
  code: Code,
  values: Readonly<Record<Places<Code>, string>>,
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

/** 422 that names every field; its message is about the first one. */
export const invalidFields = (
  details: ErrorDetails,
  code: ValidationCode = 'request.validation_failed',
): ApiError => filledError(code, { problem: fieldsMessage(details) }, { details })

/** 503 for a statement that was given up. It may succeed later; a question most likely does when it is smaller. */
export function tookTooLong(cause: unknown, retrySeconds = 1): ApiError {
  return new ApiError('service.unavailable', {
    message:
      'This took too long, and was given up. A question may be answered for a shorter time, or with other filters.',
    headers: { 'retry-after': String(retrySeconds) },
    cause,
  })
}

/** 503 for what cannot be reached or has too much to do. Nothing was acknowledged, so a retry is safe. */
export function unavailable(cause: unknown, retrySeconds = 1): ApiError {
  return new ApiError('service.unavailable', {
    headers: { 'retry-after': String(retrySeconds) },
    cause,
  })
}
