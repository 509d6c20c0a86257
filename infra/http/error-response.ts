import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import {
  ApiError,
  type ErrorCode,
  type ErrorDetails,
  errorTable,
  filledError,
  type PlainCode,
  queryTimeout,
  unavailable,
} from '../errors/errors.ts'
import { LogUnavailable } from '../log/port.ts'
import { isConnectionError, isStatementTimeout } from '../postgres/pool.ts'
import { type ValidationOptions, validationError } from './validation.ts'

export interface ErrorEnvelope {
  error: {
    code: ErrorCode
    message: string
    status: number
    retryable: boolean
    request_id: string
    docs_url: string
    details?: ErrorDetails
  }
}

export function errorEnvelope(
  error: ApiError,
  { requestId, publicUrl }: { requestId: string; publicUrl: string },
): ErrorEnvelope {
  const { code, message, details, status, retryable } = error
  const docs_url = `${publicUrl}/docs/errors#${code}`
  return {
    error: {
      code,
      message,
      status,
      retryable,
      request_id: requestId,
      docs_url,
      ...(details && { details }),
    },
  }
}

/** Returns the error's headers, and the code's default headers that the error doesn't override. */
export function errorHeaders({ code, headers, retryable }: ApiError): Record<string, string> {
  if (code === 'service.unavailable' && retryable) return { 'retry-after': '1', ...headers }
  if (errorTable[code].status === 401) return { 'www-authenticate': 'Bearer', ...headers }
  return headers
}

const codeByFrameworkCode: Record<string, PlainCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'request.payload_too_large',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'request.malformed_body',
  FST_ERR_CTP_INVALID_JSON_BODY: 'request.malformed_body',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'request.malformed_body',
  FST_ERR_BAD_URL: 'request.malformed',
  FST_ERR_MAX_PARAM_LENGTH: 'request.not_found',
}

/**
 * Converts anything thrown to the ApiError that is sent. Anything that is not the caller's fault becomes 500 or 503.
 */
export function toApiError(error: unknown, options: ValidationOptions = {}): ApiError {
  if (error instanceof ApiError) return error
  // Checked first: a client that hangs up also causes a connection error, which must not pass for one of the database.
  const clientError = validationError(error, options) ?? frameworkError(error)
  if (clientError) return clientError
  if (isStatementTimeout(error)) return queryTimeout(error)
  if (error instanceof LogUnavailable || isConnectionError(error)) return unavailable(error)
  return new ApiError('internal.error', { cause: error })
}

function frameworkError(error: unknown): ApiError | undefined {
  if (!(error instanceof Error)) return undefined
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return unsupportedContentType()
  const apiCode = codeByFrameworkCode[code]
  if (apiCode) return new ApiError(apiCode, { cause: error })
  const status = 'statusCode' in error ? error.statusCode : undefined
  return status === 400 ? new ApiError('request.malformed_body', { cause: error }) : undefined
}

export function unsupportedContentType(expected = 'application/json'): ApiError {
  const fields = [{ name: 'Content-Type', issue: 'unsupported', expected }]
  const details = { fields, header_name: 'Content-Type' }
  return filledError('request.invalid_content_type', { expected }, { details })
}

/** Returns the 415 for a compressed body; its Accept-Encoding header follows RFC 9110, section 12.5.3. */
export function unsupportedEncoding(): ApiError {
  const fields = [{ name: 'Content-Encoding', issue: 'unsupported', expected: 'identity' }]
  return new ApiError('request.invalid_content_type', {
    message: 'The Content-Encoding must be identity: bodies are not sent compressed.',
    details: { fields, header_name: 'Content-Encoding' },
    headers: { 'accept-encoding': 'identity' },
  })
}

const codeByParserCode: Record<string, PlainCode> = {
  HPE_HEADER_OVERFLOW: 'request.headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request.timeout',
}

/**
 * Responds to a request that the HTTP parser rejected. No request object exists yet, so it writes to the socket. Closes
 * the connection, because the next request cannot be told apart from the rest of the broken one.
 */
export function respondToClientError(
  error: { code?: string },
  socket: Socket,
  options: { requestId: string; publicUrl: string },
): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) return
  const apiError = new ApiError(codeByParserCode[error.code ?? ''] ?? 'request.malformed')
  const body = JSON.stringify(errorEnvelope(apiError, options))
  const head = [
    `HTTP/1.1 ${apiError.status} ${STATUS_CODES[apiError.status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${options.requestId}`,
    'Connection: close',
  ].join('\r\n')
  socket.end(`${head}\r\n\r\n${body}`)
}
