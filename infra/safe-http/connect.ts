import { Resolver } from 'node:dns/promises'
import { isIP, type Socket } from 'node:net'
import { buildConnector } from 'undici'
import { type AddressRules, hostOf, isLocalhost, loopback } from './addresses.ts'
import { connectFailure, noAddress } from './failures.ts'

export interface ConnectorOptions {
  rules: AddressRules
  dnsTimeoutMs?: number
  /** From the first SYN to the end of the TLS handshake, rounded to seconds. */
  connectTimeoutMs?: number
  dnsServers?: string[]
  ca?: string
}

/**
 * Connects only where the rules allow. The name is resolved once, every address is checked, and those same addresses are
 * dialled. The address at the other end is checked again before a byte of the request is sent. Plain http goes to
 * exceptions only, since no certificate proves who answers there. Fails with DeliveryFailure.
 */
export function createConnector(options: ConnectorOptions): buildConnector.connector {
  const { rules } = options
  async function open(target: buildConnector.Options): Promise<Socket> {
    const mayReach = target.protocol === 'https:' ? rules.isAllowed : rules.isException
    const addresses = checkedAddresses(await resolve(hostOf(target), options), mayReach)
    const socket = await dial(target, addresses, options)
    if (mayReach(socket.remoteAddress ?? '')) return socket
    socket.destroy()
    throw noAddress('address')
  }
  return (target, done) => {
    open(target).then(
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
  const found = addresses.map((address) => ({ address, family: isIP(address) }))
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    allowH2: false,
    // Node does not check the certificate's names in a resumed session.
    maxCachedSessions: 0,
    // Set although it is the default, because NODE_TLS_REJECT_UNAUTHORIZED=0 would change that.
    rejectUnauthorized: true,
    lookup: (_host, _options, answer) => answer(null, found),
    ...(ca === undefined ? {} : { ca }),
  })
  // An address is no server name (RFC 6066, section 3); the certificate is then compared with the host.
  const to = { ...target, hostname: host, servername: isIP(host) ? '' : host }
  return new Promise((resolve, reject) => {
    connect(to, (error, socket) => (error ? reject(connectFailure(error)) : resolve(socket)))
  })
}

const mostAddresses = 8

// One bad address refuses them all, because a name that mixes one in is meant to lead there sooner or later.
function checkedAddresses(addresses: string[], mayReach: (ip: string) => boolean): string[] {
  const allowed = addresses.filter(mayReach)
  // localhost has two addresses, of which an operator may have allowed only one.
  const isLocal = addresses.every((ip) => loopback.includes(ip))
  const areAllGood = allowed.length === addresses.length || isLocal
  if (allowed.length === 0 || !areAllGood) throw noAddress('address')
  return allowed.slice(0, mostAddresses)
}

// How long the other family may take once one has answered: some servers never answer AAAA.
const otherFamilyMs = 300

// Resolves by DNS only. getaddrinfo runs in libuv's four threads, where one customer's silent DNS server would stop the
// look-ups of all others, and access to files. So /etc/hosts and search domains do not count: receivers in a private
// network need a full DNS name or an IP address.
async function resolve(
  host: string,
  { dnsTimeoutMs = 5000, dnsServers }: ConnectorOptions,
): Promise<string[]> {
  if (isIP(host)) return [host]
  if (isLocalhost(host)) return loopback
  // A resolver for each look-up, since cancel() ends all look-ups of one, and so that changes of resolv.conf count.
  const dns = new Resolver({ timeout: Math.ceil(dnsTimeoutMs / 7), tries: 3 })
  if (dnsServers) dns.setServers(dnsServers)
  const cancelIn = (ms: number) => setTimeout(() => dns.cancel(), ms)
  const timers = [cancelIn(dnsTimeoutMs)]
  const family = async (answer: Promise<string[]>) => {
    const addresses = await answer.catch(() => [])
    if (addresses.length > 0) timers.push(cancelIn(otherFamilyMs))
    return addresses
  }
  const found = (await Promise.all([family(dns.resolve4(host)), family(dns.resolve6(host))])).flat()
  timers.forEach(clearTimeout)
  if (found.length === 0) throw noAddress('dns')
  return found
}
