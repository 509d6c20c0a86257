/** Every error code the API answers with: status, whether the same request may succeed later, and what it means. */
export const errorTable = {
  'auth.missing_api_key': { status: 401, retryable: false, message: 'The Authorization header is missing.' },
  'auth.invalid_api_key': {
    status: 401,
    retryable: false,
    message: 'The API key is malformed, unknown, revoked or expired.',
  },
  'auth.secret_key_required': { status: 403, retryable: false, message: 'This endpoint needs a secret key.' },
  'auth.secret_key_not_allowed': {
    status: 403,
    retryable: false,
    message: 'Secret keys do not work on collect endpoints; use a publishable key.',
  },
  'auth.native_key_not_allowed': {
    status: 403,
    retryable: false,
    message: 'This native key works only with its own mobile SDK on collect session endpoints.',
  },
  'auth.insufficient_scope': {
    status: 403,
    retryable: false,
    message: 'The API key lacks a scope that this endpoint needs.',
  },
  'auth.organization_access_denied': {
    status: 403,
    retryable: false,
    message: 'The API key belongs to another organization.',
  },
  'auth.organization_inactive': {
    status: 403,
    retryable: false,
    message: 'The organization is suspended or deleted.',
  },
  'auth.origin_not_allowed': {
    status: 403,
    retryable: false,
    message: 'The request origin is not allowed for this key.',
  },
  'request.malformed_body': { status: 400, retryable: false, message: 'The request body is not valid JSON.' },
  'request.malformed': {
    status: 400,
    retryable: false,
    message: 'The request is not valid HTTP, or its URL cannot be read.',
  },
  'request.timeout': {
    status: 408,
    retryable: true,
    message: 'The request did not arrive completely in time.',
  },
  'request.headers_too_large': {
    status: 431,
    retryable: false,
    message: 'The request headers or its URL are too large.',
  },
  'request.validation_failed': {
    status: 422,
    retryable: false,
    message: 'The request has an invalid value.',
  },
  'request.conflict': { status: 409, retryable: false, message: 'The request conflicts with what exists.' },
  'request.not_found': { status: 404, retryable: false, message: 'Nothing was found here.' },
  'request.method_not_allowed': {
    status: 405,
    retryable: false,
    message: 'This path does not support the method.',
  },
  'request.invalid_content_type': {
    status: 415,
    retryable: false,
    message: 'The content type is not supported here.',
  },
  'request.payload_too_large': { status: 413, retryable: false, message: 'The request body is too large.' },
  'session.sequence_mismatch': {
    status: 409,
    retryable: false,
    message: 'The batch sequence number is not the expected one.',
  },
  'session.invalid_or_expired': {
    status: 410,
    retryable: false,
    message: 'The collect session is invalid or has expired; start a new one.',
  },
  'transport.session_reset_required': {
    status: 409,
    retryable: true,
    message: 'The body could not be decrypted; start a new session.',
  },
  'rate_limit.exceeded': {
    status: 429,
    retryable: true,
    message: 'Too many requests; wait for Retry-After.',
  },
  'internal.error': { status: 500, retryable: true, message: 'Something failed on our side.' },
  'service.unavailable': {
    status: 503,
    retryable: true,
    message: 'The service cannot take this request now; retry after Retry-After.',
  },
} as const satisfies Record<string, { status: number; retryable: boolean; message: string }>

export type ErrorCode = keyof typeof errorTable

export interface FieldIssue {
  name: string
  issue: string
  expected?: string
  received?: string | number | boolean | null
}

export interface ErrorDetails {
  fields?: FieldIssue[]
  allowed_values?: string[]
  header_name?: string
  parameter_set?: string
  next_action?: 'retry' | 'new_session' | 'reload_bundle' | 'contact_support'
}

interface ApiErrorOptions {
  message?: string
  details?: ErrorDetails
  headers?: Record<string, string>
  cause?: unknown
}

/** A refusal that the caller is told about. Thrown anywhere, turned into the error envelope once, at the edge. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly details: ErrorDetails | undefined
  readonly headers: Record<string, string>

  constructor(code: ErrorCode, options: ApiErrorOptions = {}) {
    super(options.message ?? errorTable[code].message, { cause: options.cause })
    this.name = 'ApiError'
    this.code = code
    this.details = options.details
    this.headers = options.headers ?? {}
  }

  get status(): number {
    return errorTable[this.code].status
  }
}

/** 422 that names one field. */
export function invalidField(field: FieldIssue, details: ErrorDetails = {}): ApiError {
  return new ApiError('request.validation_failed', {
    message: `${field.name}: ${field.issue}`,
    details: { ...details, fields: [field] },
  })
}

/** 503 for a log or database that cannot be reached: nothing was acknowledged, so a retry is safe. */
export function unavailable(cause: unknown): ApiError {
  return new ApiError('service.unavailable', { headers: { 'retry-after': '1' }, cause })
}
