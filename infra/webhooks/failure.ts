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

/** Of an error after the request was sent. `hasBegun`: the first byte of a response had come. */
export function exchangeFailure(error: unknown, hasBegun: boolean): DeliveryFailure {
  if (error instanceof DeliveryFailure) return error
  const code = codeOf(error)
  if (code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new DeliveryFailure('protocol', 'The headers of the response are too large.')
  }
  if (isMalformed(error, code)) {
    return new DeliveryFailure('protocol', 'The response is not valid HTTP/1.1.')
  }
  return new DeliveryFailure(
    'reset',
    hasBegun ? 'The response broke off.' : 'The receiver closed the connection without a response.',
  )
}

function isMalformed(error: unknown, code: string): boolean {
  // A body that ends before it is complete is malformed to the parser, but what happened is that it broke off.
  if (code.startsWith('HPE_')) return code !== 'HPE_INVALID_EOF_STATE'
  if (code.startsWith('UND_ERR_INVALID')) return true
  // undici's words for an unasked-for 100 or 101, which it does not read past.
  const isBadResponse = error instanceof Error && /^bad (response|upgrade)$/.test(error.message)
  return code === 'UND_ERR_SOCKET' && isBadResponse
}
