import { Resolver } from 'node:dns/promises'
import { isIP, connect as openTcp, type Socket, type TcpNetConnectOpts } from 'node:net'
import { connect as openTls } from 'node:tls'
import type { buildConnector } from 'undici'
import { type AddressRules, hostOf, isLocalhost, loopback } from './addresses.ts'
import { connectFailure, DeliveryFailure, noAddress } from './failures.ts'

interface ConnectorOptions {
  rules: AddressRules
  dnsTimeoutMs?: number
  /** From the first SYN to the end of the TLS handshake. */
  connectTimeoutMs?: number
  dnsServers?: string[]
  ca?: string
  /** Ends look-ups and attempts to connect. */
  signal: AbortSignal
}

const mostAddresses = 8

/**
 * Connects only where the rules allow. The name is resolved once, every address is checked, and those same addresses are
 * dialled. The address at the other end is checked again before a byte is sent. Plain http goes to exceptions only,
 * since no certificate proves who answers there. Fails with DeliveryFailure.
 */
export function createConnector(options: ConnectorOptions): buildConnector.connector {
  const { rules } = options
  async function open({ protocol, host: authority = '' }: buildConnector.Options): Promise<Socket> {
    const url = new URL(`${protocol}//${authority}`)
    const isSecure = protocol === 'https:'
    const mayReach = isSecure ? rules.isAllowed : rules.isException
    const addresses = checkedAddresses(await resolve(hostOf(url), options), mayReach)
    return await dial({ ...options, url, isSecure, mayReach, addresses })
  }
  return (target, done) => {
    open(target).then(
      (socket) => done(null, socket),
      (error) => done(error, null),
    )
  }
}

// One bad address refuses them all: a name that mixes it in wants it to be reached sooner or later.
function checkedAddresses(addresses: string[], mayReach: (ip: string) => boolean): string[] {
  const allowed = addresses.filter(mayReach)
  // Of the two meanings of localhost an operator may have allowed one.
  const isLocal = addresses.every((ip) => loopback.includes(ip))
  const areAllGood = allowed.length === addresses.length || isLocal
  if (allowed.length === 0 || !areAllGood) throw noAddress('address')
  return allowed.slice(0, mostAddresses)
}

interface DialOptions extends ConnectorOptions {
  url: URL
  isSecure: boolean
  mayReach(ip: string): boolean
  addresses: string[]
}

function dial({ isSecure, mayReach, signal, connectTimeoutMs = 5000, ...to }: DialOptions): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  signal.throwIfAborted()
  let isTls = false
  const socket = isSecure
    ? openTls({ ...tcpOptions(to, 443), ...tlsOptions(to) })
    : openTcp(tcpOptions(to, 80))
  const stop = () => socket.destroy(overdue())
  const timer = setTimeout(stop, connectTimeoutMs)
  signal.addEventListener('abort', stop, { once: true })
  socket.on('error', (error) => reject(connectFailure(error, { isTls })))
  // Before TLS hears of the connection and sends its first byte.
  socket.prependOnceListener('connect', () => {
    isTls = isSecure
    if (!mayReach(socket.remoteAddress ?? '')) socket.destroy(noAddress('address'))
  })
  socket.once(isSecure ? 'secureConnect' : 'connect', () => {
    if (!socket.destroyed) resolve(socket)
  })
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  })
}

function overdue(): DeliveryFailure {
  return new DeliveryFailure('timeout', 'The receiver did not accept a connection in time.')
}

// How long one address may take while there is another.
const attemptMs = 500

function tcpOptions(
  { url, addresses }: Pick<DialOptions, 'url' | 'addresses'>,
  port: number,
): TcpNetConnectOpts {
  const found = addresses.map((address) => ({ address, family: isIP(address) }))
  return {
    host: hostOf(url),
    port: Number(url.port) || port,
    lookup: (_host, _options, answer) => answer(null, found),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: attemptMs,
    noDelay: true,
  }
}

// For HTTP/1.1. No session is kept, since Node does not check the certificate's names in a resumed one.
function tlsOptions({ url, ca }: { url: URL; ca?: string }) {
  const host = hostOf(url)
  return {
    // An IP address is no server name (RFC 6066, section 3); the certificate is then compared with `host`.
    ...(isIP(host) ? {} : { servername: host }),
    ...(ca === undefined ? {} : { ca }),
    // Said although it is the default, which NODE_TLS_REJECT_UNAUTHORIZED=0 would change.
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
  }
}

// All addresses of a host (as `hostOf` gives it), none of them checked.
async function resolve(host: string, options: ConnectorOptions): Promise<string[]> {
  if (isIP(host)) return [host]
  if (isLocalhost(host)) return loopback
  return await lookUp(host, options)
}

// How long the other family may take once one has answered: some servers never answer AAAA.
const otherFamilyMs = 300

/**
 * Resolves by DNS alone. getaddrinfo runs in libuv's four threads, where one customer's silent DNS server would stop the
 * look-ups of all others, and access to files. So /etc/hosts and search domains do not count: receivers in a private
 * network need a full DNS name or an IP address.
 */
async function lookUp(
  host: string,
  { dnsTimeoutMs = 5000, dnsServers, signal }: ConnectorOptions,
): Promise<string[]> {
  // One for each look-up, since cancel() ends all of a resolver's, and so that changes of resolv.conf count.
  // c-ares waits twice the time before the second try and doubles it for each further one: 2/14 + 4/14 + 8/14.
  const dns = new Resolver({ timeout: Math.ceil(dnsTimeoutMs / 14), tries: 3 })
  if (dnsServers) dns.setServers(dnsServers)
  const cancel = () => dns.cancel()
  let timer = setTimeout(cancel, dnsTimeoutMs)
  signal.addEventListener('abort', cancel, { once: true })
  const family = async (answer: Promise<string[]>) => {
    const addresses = await answer.catch(() => [])
    if (addresses.length > 0) {
      clearTimeout(timer)
      timer = setTimeout(cancel, otherFamilyMs)
    }
    return addresses
  }
  const found = (await Promise.all([family(dns.resolve4(host)), family(dns.resolve6(host))])).flat()
  clearTimeout(timer)
  signal.removeEventListener('abort', cancel)
  if (found.length === 0) throw noAddress('dns')
  return found
}
