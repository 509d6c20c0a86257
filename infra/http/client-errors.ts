import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { ApiError, type PlainCode } from '../errors/errors.ts'
import { errorEnvelope } from './error-response.ts'

const codes: Record<string, PlainCode> = {
  HPE_HEADER_OVERFLOW: 'request.headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request.timeout',
}

/**
 * Answers what the HTTP parser refused. There is no request object yet, so the response is written to the socket
 * as it is, and the connection ends: what follows on it cannot be told apart from the broken request.
 */
export function answerClientError(
  error: { code?: string },
  socket: Socket,
  options: { requestId: string; publicUrl: string },
): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) return
  const apiError = new ApiError(codes[error.code ?? ''] ?? 'request.malformed')
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
