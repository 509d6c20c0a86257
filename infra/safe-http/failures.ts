import { errors } from 'undici'

/**
 * Reasons for a missing response, for operators. `timeout`: in any phase after DNS. `reset`: the connection was closed
 * early. `dropped`: `canSend` cancelled the request.
 */
export type FailureReason =
  | 'address'
  | 'dns'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'protocol'
  | 'dropped'

/** A failed delivery. The message is for the endpoint's owner and names no address, which could be an internal one. */
export class DeliveryFailure extends Error {
  override name = 'DeliveryFailure'
  readonly reason: FailureReason

  constructor(reason: FailureReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/**
 * Returns the same text whether the name is unknown, resolves to a private address or times out. Otherwise the owner of
 * an endpoint could probe for internal names that our DNS knows.
 */
export function noAddressFailure(reason: 'dns' | 'address'): DeliveryFailure {
  return new DeliveryFailure(reason, 'No address that webhooks are sent to was found for the host.')
}

export function connectFailure(error: Error): DeliveryFailure {
  if (error instanceof DeliveryFailure) return error
  const code = memberOf(error, 'code')
  if (error instanceof errors.ConnectTimeoutError || code === 'ETIMEDOUT')
    return new DeliveryFailure('timeout', 'The receiver did not accept a connection in time.')
  if (code === 'ECONNREFUSED')
    return new DeliveryFailure('connect', 'The receiver refused the connection.')
  // All other errors are from the TLS handshake. An AggregateError combines the connect errors of several addresses.
  if (memberOf(error, 'syscall') === 'connect' || error instanceof AggregateError)
    return new DeliveryFailure('connect', 'No connection to the receiver can be made.')
  return new DeliveryFailure('tls', tlsProblem(code))
}

function tlsProblem(code: string): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return 'The certificate of the receiver is for another host.'
  if (code === 'CERT_HAS_EXPIRED') return 'The certificate of the receiver has expired.'
  if (/CERT|ISSUER|SIGNED|SIGNATURE/.test(code))
    return `The certificate of the receiver is not trusted (${code}).`
  return 'The TLS handshake with the receiver failed.'
}

function memberOf(error: Error, name: 'code' | 'syscall'): string {
  const value = Reflect.get(error, name)
  return typeof value === 'string' ? value : ''
}

/** Converts an error of the HTTP exchange. `hasHead`: status and headers had arrived. */
export function exchangeFailure(
  error: unknown,
  { hasHead }: { hasHead: boolean },
): DeliveryFailure {
  if (error instanceof DeliveryFailure) return error
  if (error instanceof errors.ClientDestroyedError)
    return new DeliveryFailure('reset', 'Sending was stopped.')
  if (error instanceof errors.HeadersOverflowError)
    return new DeliveryFailure('protocol', 'The headers of the response are too large.')
  if (error instanceof Error && isMalformed(error, hasHead))
    return new DeliveryFailure('protocol', 'The response is not valid HTTP/1.1.')
  if (hasHead) return new DeliveryFailure('reset', 'The response broke off.')
  return new DeliveryFailure('reset', 'The receiver closed the connection without a response.')
}

// Excludes truncated bodies, which the parser reports as malformed too.
function isMalformed(error: Error, hasHead: boolean): boolean {
  if (error instanceof errors.HTTPParserError) return !error.message.includes('Invalid EOF state')
  // Before the end of the head this means two different Content-Length headers.
  if (error instanceof errors.ResponseContentLengthMismatchError) return !hasHead
  // undici's messages for an unrequested 100 or 101, after which it stops reading.
  return error instanceof errors.SocketError && /^bad (response|upgrade)$/.test(error.message)
}
