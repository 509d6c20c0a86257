import { Resolver } from 'node:dns/promises'
import { isIP, connect as openTcp, type Socket } from 'node:net'
import { connect as openTls } from 'node:tls'
import { errors } from 'undici'
import { isLocalhost, loopback } from './addresses.ts'

/** All addresses of a host (as `hostOf` gives it), none of them checked. Rejects with DeliveryFailure. */
export type HostResolver = (host: string, signal: AbortSignal) => Promise<string[]>

/** How long the other family may take once one has answered: some servers never answer AAAA. */
const otherFamilyMs = 300

/**
 * Resolves by DNS alone. getaddrinfo runs in libuv's four threads, where one customer's silent DNS server would stop the
 * look-ups of all others, and access to files. So /etc/hosts and search domains do not count: receivers in a private
 * network need a full DNS name or an IP address.
 */
export function createHostResolver(options: { timeoutMs: number; servers?: string[] }): HostResolver {
  return async (host, signal) => {
    if (isIP(host)) return [host]
    if (isLocalhost(host)) return loopback
    return await lookUp(host, { ...options, signal })
  }
}

interface LookUp {
  timeoutMs: number
  servers?: string[]
  signal: AbortSignal
}

async function lookUp(host: string, { timeoutMs, servers, signal }: LookUp): Promise<string[]> {
  // One for each look-up, since cancel() ends all of a resolver's, and so that changes of resolv.conf count.
  // c-ares waits twice the time before the second try and doubles it for each further one: 2/14 + 4/14 + 8/14.
  const dns = new Resolver({ timeout: Math.ceil(timeoutMs / 14), tries: 3 })
  if (servers) dns.setServers(servers)
  const cancel = () => dns.cancel()
  let timer = setTimeout(cancel, timeoutMs)
  signal.addEventListener('abort', cancel)
  const family = async (answer: Promise<string[]>) => {
    const addresses = await addressesOf(answer)
    if (addresses.length === 0) return addresses
    clearTimeout(timer)
    timer = setTimeout(cancel, otherFamilyMs)
    return addresses
  }
  const answers = await Promise.allSettled([family(dns.resolve4(host)), family(dns.resolve6(host))])
  clearTimeout(timer)
  signal.removeEventListener('abort', cancel)
  return together(answers)
}

function together(answers: PromiseSettledResult<string[]>[]): string[] {
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  if (addresses.length > 0) return addresses
  for (const answer of answers) if (answer.status === 'rejected') throw answer.reason
  throw noAddress('dns')
}

async function addressesOf(answer: Promise<string[]>): Promise<string[]> {
  try {
    return await answer
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENODATA') return []
    throw noAddress('dns')
  }
}

/**
 * The same words whether the name exists, leads to a private address or is not answered for. Our DNS may know internal
 * names, and whoever makes an endpoint could ask for them one by one.
 */
export function noAddress(reason: 'dns' | 'address'): DeliveryFailure {
  return new DeliveryFailure(reason, 'No address that webhooks are sent to was found for the host.')
}

/** How long one address may take while there is another. */
const attemptMs = 500

interface DialOptions {
  host: string
  port: number
  addresses: string[]
  signal: AbortSignal
}

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

interface SecureOptions {
  host: string
  ca: string | undefined
  signal: AbortSignal
}

/**
 * TLS for HTTP/1.1. No session is kept, since Node does not check the certificate's names in a resumed one. Rejects with
 * DeliveryFailure.
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

/**
 * Why there was no response, for operators. timeout: in whatever phase once there was an address; reset: the connection
 * broke off.
 */
export type FailureReason = 'address' | 'dns' | 'connect' | 'tls' | 'timeout' | 'reset' | 'protocol'

/** The message is for the endpoint's owner. It names no address, since DNS may know internal ones. */
export class DeliveryFailure extends Error {
  override name = 'DeliveryFailure'
  readonly reason: FailureReason

  constructor(reason: FailureReason, message: string) {
    super(message)
    this.reason = reason
  }
}

function codeOf(error: unknown): string {
  const code = error instanceof Error ? Reflect.get(error, 'code') : undefined
  return typeof code === 'string' ? code : ''
}

export type ResponseProgress = 'nothing' | 'begun' | 'head'

export function exchangeFailure(error: unknown, progress: ResponseProgress): DeliveryFailure {
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

/** A body that ends too early is malformed to the parser too, but it broke off. */
function isMalformed(error: Error, progress: ResponseProgress): boolean {
  const code = codeOf(error)
  if (error instanceof errors.HTTPParserError) return !error.message.includes('Invalid EOF state')
  // Before the end of the head: two lengths that differ.
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return progress !== 'head'
  // undici's words for an unasked-for 100 or 101, which it does not read past.
  return code === 'UND_ERR_SOCKET' && /^bad (response|upgrade)$/.test(error.message)
}
