import { errors } from 'undici'

/** Why there was no response. timeout: it took too long, in whatever phase; reset: the connection broke off. */
export type FailureReason = 'address' | 'dns' | 'connect' | 'tls' | 'timeout' | 'reset' | 'protocol'

/** No response, with a message for the endpoint's owner: it names no address, since DNS may know internal ones. */
export class DeliveryFailure extends Error {
  override name = 'DeliveryFailure'
  readonly reason: FailureReason

  constructor(reason: FailureReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/** The error code of Node, OpenSSL, c-ares or undici; an empty text when it has none. */
export function codeOf(error: unknown): string {
  const code = error instanceof Error ? Reflect.get(error, 'code') : undefined
  return typeof code === 'string' ? code : ''
}

/** How far a response had come: its first byte, its head. */
export type Progress = 'nothing' | 'begun' | 'head'

/** Of an error of undici. */
export function exchangeFailure(error: unknown, progress: Progress): DeliveryFailure {
  if (error instanceof DeliveryFailure) return error
  if (codeOf(error) === 'UND_ERR_HEADERS_OVERFLOW') {
    return new DeliveryFailure('protocol', 'The headers of the response are too large.')
  }
  if (error instanceof Error && isMalformed(error, progress)) {
    return new DeliveryFailure('protocol', 'The response is not valid HTTP/1.1.')
  }
  const message =
    progress === 'nothing'
      ? 'The receiver closed the connection without a response.'
      : 'The response broke off.'
  return new DeliveryFailure('reset', message)
}

/** A body that ends too early is malformed to the parser as well, but what happened is that it broke off. */
function isMalformed(error: Error, progress: Progress): boolean {
  const code = codeOf(error)
  if (error instanceof errors.HTTPParserError) return !error.message.includes('Invalid EOF state')
  // Before the end of the head: two lengths that differ.
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return progress !== 'head'
  // undici's words for an unasked-for 100 or 101, which it does not read past.
  return code === 'UND_ERR_SOCKET' && /^bad (response|upgrade)$/.test(error.message)
}
