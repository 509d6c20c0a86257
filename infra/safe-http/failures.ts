import { errors } from 'undici'

/**
 * Why there was no response, for operators. timeout: in whatever phase once there was an address; reset: the connection
 * broke off; dropped: nothing was sent, because the caller did not want it any more (`mayBegin`).
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

/** The message is for the endpoint's owner. It names no address, since DNS may know internal ones. */
export class DeliveryFailure extends Error {
  override name = 'DeliveryFailure'
  readonly reason: FailureReason

  constructor(reason: FailureReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/**
 * The same text whether the name exists, leads to a private address or is not answered for. Our DNS may know internal
 * names, and whoever makes an endpoint could ask for them one by one.
 */
export function noAddress(reason: 'dns' | 'address'): DeliveryFailure {
  return new DeliveryFailure(reason, 'No address that webhooks are sent to was found for the host.')
}

export function connectFailure(error: Error): DeliveryFailure {
  if (error instanceof DeliveryFailure) return error
  const code = memberOf(error, 'code')
  if (error instanceof errors.ConnectTimeoutError || code === 'ETIMEDOUT')
    return new DeliveryFailure('timeout', 'The receiver did not accept a connection in time.')
  if (code === 'ECONNREFUSED')
    return new DeliveryFailure('connect', 'The receiver refused the connection.')
  // Later errors are of the TLS handshake. An AggregateError has those of several addresses.
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

/** `hasHead`: the status and headers of a response had come. */
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

// A body that ends too early is malformed to the parser too, but it broke off.
function isMalformed(error: Error, hasHead: boolean): boolean {
  if (error instanceof errors.HTTPParserError) return !error.message.includes('Invalid EOF state')
  // Before the end of the head: two lengths that differ.
  if (error instanceof errors.ResponseContentLengthMismatchError) return !hasHead
  // undici's message for a 100 or 101 that was not requested, which it does not read past.
  return error instanceof errors.SocketError && /^bad (response|upgrade)$/.test(error.message)
}
