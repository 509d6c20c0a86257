import { isIP, connect as openTcp, type Socket } from 'node:net'
import { connect as openTls } from 'node:tls'
import type { AddressRules } from './address-rules.ts'
import { codeOf, DeliveryFailure } from './failure.ts'
import type { HostResolver } from './resolver.ts'
import { hostOf, loopback } from './url.ts'

export interface ConnectorOptions {
  rules: AddressRules
  resolve: HostResolver
  /** From the first SYN to the end of the TLS handshake. */
  timeoutMs: number
  /** PEM; instead of the certificate authorities that Node knows. */
  ca?: string | undefined
}

/** Opens a connection to the receiver of a URL; rejects with DeliveryFailure. */
export type Connector = (url: URL, signal: AbortSignal) => Promise<Socket>

/** How many addresses of a host are tried, and how long each may take while there is another. */
const mostAddresses = 8
const attemptMs = 500

/**
 * Makes connections that cannot end anywhere but where the rules allow. The addresses are resolved here, every one is
 * checked, and those same addresses are dialled: nothing resolves the name a second time. The address at the other
 * end is checked once more before a byte is sent. Plain http goes to exceptions only: there is no certificate that
 * would tell a receiver from whoever answers at its address.
 */
export function createConnector({ rules, resolve, timeoutMs, ca }: ConnectorOptions): Connector {
  return async (url, signal) => {
    const isSecure = url.protocol === 'https:'
    const mayReach = isSecure ? rules.isAllowed : rules.isException
    const host = hostOf(url)
    const addresses = checkedAddresses(await resolve(host, signal), mayReach)
    return await beforeTimeout({ timeoutMs, signal }, async (stop) => {
      const port = Number(url.port) || (isSecure ? 443 : 80)
      const socket = await dial({ host, port, addresses, signal: stop })
      if (!mayReach(socket.remoteAddress ?? '')) {
        socket.destroy()
        throw forbidden()
      }
      return isSecure ? await secure(socket, { host, ca, signal: stop }) : socket
    })
  }
}

/** One bad answer condemns all: who mixes them in wants us to reach it sooner or later. */
function checkedAddresses(addresses: string[], mayReach: (ip: string) => boolean): string[] {
  const allowed = addresses.filter(mayReach)
  // Of the two meanings of localhost an operator may have allowed one.
  const isLocalhost = addresses.every((ip) => loopback.includes(ip))
  const areAllGood = allowed.length === addresses.length || isLocalhost
  if (allowed.length === 0 || !areAllGood) throw forbidden()
  return allowed.slice(0, mostAddresses)
}

function forbidden(): DeliveryFailure {
  return new DeliveryFailure('address', 'The host resolves to an address to which webhooks are not sent.')
}

async function beforeTimeout<R>(
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
  work: (stop: AbortSignal) => Promise<R>,
): Promise<R> {
  const stop = new AbortController()
  const timer = setTimeout(() => {
    stop.abort(new DeliveryFailure('timeout', 'The receiver did not accept a connection in time.'))
  }, timeoutMs)
  try {
    return await work(AbortSignal.any([signal, stop.signal]))
  } finally {
    clearTimeout(timer)
  }
}

interface DialOptions {
  host: string
  port: number
  addresses: string[]
  signal: AbortSignal
}

function dial({ host, port, addresses, signal }: DialOptions): Promise<Socket> {
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

interface SecureOptions {
  host: string
  ca: string | undefined
  signal: AbortSignal
}

/**
 * No TLS session is kept: in a resumed one Node does not look at the certificate's names again. Only HTTP/1.1 is
 * offered.
 */
function secure(socket: Socket, { host, ca, signal }: SecureOptions): Promise<Socket> {
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
