import { Resolver } from 'node:dns/promises'
import { isIP, type Socket } from 'node:net'
import { buildConnector } from 'undici'
import { type AddressRules, hostOf, isLocalhost, loopback } from './addresses.ts'
import { connectFailure, noAddressFailure } from './failures.ts'

export interface ConnectorOptions {
  rules: AddressRules
  dnsTimeoutMs?: number
  /** Milliseconds from the first SYN to the end of the TLS handshake, rounded to seconds. */
  connectTimeoutMs?: number
  dnsServers?: string[]
  ca?: string
}

/**
 * Creates an undici connector that connects only to allowed addresses. To prevent DNS rebinding, it resolves the name
 * once, checks every address, dials only those, and checks the peer's address before it sends a byte. Plain http needs
 * an allowed network, because no certificate proves the receiver's identity. Fails with DeliveryFailure.
 */
export function createConnector(options: ConnectorOptions): buildConnector.connector {
  const { rules } = options
  async function openSocket(target: buildConnector.Options): Promise<Socket> {
    const isReachable = target.protocol === 'https:' ? rules.isAllowed : rules.isInAllowedNetwork
    const addresses = checkedAddresses(await resolve(hostOf(target), options), isReachable)
    const socket = await dial(target, addresses, options)
    if (isReachable(socket.remoteAddress ?? '')) return socket
    socket.destroy()
    throw noAddressFailure('address')
  }
  return (target, done) => {
    openSocket(target).then(
      (socket) => done(null, socket),
      (error) => done(error, null),
    )
  }
}

function dial(
  target: buildConnector.Options,
  addresses: string[],
  { connectTimeoutMs = 5000, ca }: ConnectorOptions,
): Promise<Socket> {
  const host = hostOf(target)
  const resolved = addresses.map((address) => ({ address, family: isIP(address) }))
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    allowH2: false,
    // Node does not check the certificate's names in a resumed session.
    maxCachedSessions: 0,
    // The default, set explicitly so that NODE_TLS_REJECT_UNAUTHORIZED=0 does not apply.
    rejectUnauthorized: true,
    lookup: (_host, _options, done) => done(null, resolved),
    ...(ca === undefined ? {} : { ca }),
  })
  // An IP address is not a valid server name (RFC 6066, section 3); the certificate is then checked against the host.
  const options = { ...target, hostname: host, servername: isIP(host) ? '' : host }
  return new Promise((resolve, reject) => {
    connect(options, (error, socket) => (error ? reject(connectFailure(error)) : resolve(socket)))
  })
}

const maxAddresses = 8

// Returns the addresses to dial. Throws if one of them is forbidden, because such a name is probably an attack.
function checkedAddresses(addresses: string[], isReachable: (ip: string) => boolean): string[] {
  const allowed = addresses.filter(isReachable)
  // localhost has two addresses; an operator may have allowed only one.
  const isLocal = addresses.every((ip) => loopback.includes(ip))
  const areAllAllowed = allowed.length === addresses.length || isLocal
  if (allowed.length === 0 || !areAllAllowed) throw noAddressFailure('address')
  return allowed.slice(0, maxAddresses)
}

// Time for the second address family once the first has resolved: some servers never respond to AAAA.
const secondFamilyMs = 300

// Resolves by DNS only. getaddrinfo would run in libuv's four threads, where one customer's unresponsive DNS server
// could block all other lookups and file access. So /etc/hosts and search domains do not apply: receivers in a private
// network need a full DNS name or an IP address.
async function resolve(
  host: string,
  { dnsTimeoutMs = 5000, dnsServers }: ConnectorOptions,
): Promise<string[]> {
  if (isIP(host)) return [host]
  if (isLocalhost(host)) return loopback
  // A resolver per lookup, because cancel() ends all lookups of a resolver, and to pick up changes of resolv.conf.
  const dns = new Resolver({ timeout: Math.ceil(dnsTimeoutMs / 7), tries: 3 })
  if (dnsServers) dns.setServers(dnsServers)
  const cancelIn = (ms: number) => setTimeout(() => dns.cancel(), ms)
  const timers = [cancelIn(dnsTimeoutMs)]
  const resolveFamily = async (lookup: Promise<string[]>) => {
    const addresses = await lookup.catch(() => [])
    if (addresses.length > 0) timers.push(cancelIn(secondFamilyMs))
    return addresses
  }
  const families = [dns.resolve4(host), dns.resolve6(host)]
  const addresses = (await Promise.all(families.map(resolveFamily))).flat()
  timers.forEach(clearTimeout)
  if (addresses.length === 0) throw noAddressFailure('dns')
  return addresses
}
