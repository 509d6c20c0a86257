import { isIP, connect as openTcp, type Socket } from 'node:net'
import { connect as openTls } from 'node:tls'
import { codeOf, DeliveryFailure } from './failure.ts'

/** How long one address may take while there is another. */
const attemptMs = 500

export interface DialOptions {
  host: string
  port: number
  addresses: string[]
  signal: AbortSignal
}

/** A connection to one of the addresses, which are not checked here. Rejects with DeliveryFailure. */
export function dial({ host, port, addresses, signal }: DialOptions): Promise<Socket> {
  signal.throwIfAborted()
  const found = addresses.map((address) => ({ address, family: isIP(address) }))
  const socket = openTcp({
    host,
    port,
    lookup: (_host, _options, answer) => answer(null, found),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: attemptMs,
    noDelay: true,
  })
  return whenOpen(socket, { event: 'connect', signal, failureOf: tcpFailure })
}

export interface SecureOptions {
  /** What the certificate must be for. */
  host: string
  ca: string | undefined
  signal: AbortSignal
}

/**
 * TLS over the connection; only HTTP/1.1 is offered. No session is kept: in a resumed one Node does not look at the
 * certificate's names again. Rejects with DeliveryFailure.
 */
export function secure(socket: Socket, { host, ca, signal }: SecureOptions): Promise<Socket> {
  signal.throwIfAborted()
  // What goes wrong below TLS is reported by the secured socket; unheard here it would end the process.
  socket.on('error', () => {})
  const secured = openTls({
    socket,
    host,
    // An IP address is no server name (RFC 6066, section 3); the certificate is then compared with `host`.
    ...(isIP(host) ? {} : { servername: host }),
    ...(ca === undefined ? {} : { ca }),
    // Said although it is the default, which NODE_TLS_REJECT_UNAUTHORIZED=0 would change.
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
  })
  return whenOpen(secured, { event: 'secureConnect', signal, failureOf: tlsFailure })
}

interface OpenOptions {
  event: 'connect' | 'secureConnect'
  signal: AbortSignal
  failureOf: (error: unknown) => DeliveryFailure
}

function whenOpen(socket: Socket, { event, signal, failureOf }: OpenOptions): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const abort = () => socket.destroy(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    function failed(error: unknown) {
      signal.removeEventListener('abort', abort)
      reject(error instanceof DeliveryFailure ? error : failureOf(error))
    }
    socket.once('error', failed)
    socket.once(event, () => {
      signal.removeEventListener('abort', abort)
      socket.off('error', failed)
      resolve(socket)
    })
  })
}

function tcpFailure(error: unknown): DeliveryFailure {
  const code = codeOf(error)
  if (code === 'ETIMEDOUT') return new DeliveryFailure('timeout', 'The receiver did not accept a connection.')
  if (code === 'ECONNREFUSED') return new DeliveryFailure('connect', 'The receiver refused the connection.')
  return new DeliveryFailure('connect', 'No connection to the receiver can be made.')
}

function tlsFailure(error: unknown): DeliveryFailure {
  const code = codeOf(error)
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return new DeliveryFailure('tls', 'The certificate of the receiver is for another host.')
  if (code === 'CERT_HAS_EXPIRED')
    return new DeliveryFailure('tls', 'The certificate of the receiver has expired.')
  if (/CERT|ISSUER|SIGNED|SIGNATURE/.test(code))
    return new DeliveryFailure('tls', `The certificate of the receiver is not trusted (${code}).`)
  return new DeliveryFailure('tls', 'The TLS handshake with the receiver failed.')
}
