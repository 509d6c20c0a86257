import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import { isCanonicalPublicAddress } from '../ip/network.ts'

const maxCharacters = 2000

/**
 * Returns what is wrong with a receiver's URL, as a sentence; undefined if it is valid. Catches typos and URLs that
 * could never work. The host's addresses are checked when a delivery is sent, because they may change (DNS rebinding).
 */
export function webhookUrlProblem(text: string, rules: AddressRules): string | undefined {
  if (text.length > maxCharacters) return `The URL is longer than ${maxCharacters} characters.`
  // The parser drops or replaces these characters, so it would see another URL than people do.
  if (/[\s\\\p{Cc}]/u.test(text)) return 'The URL contains white space or a backslash.'
  const url = URL.parse(text)
  if (!url) return 'This is not an absolute URL.'
  return formProblem(url, rules) ?? hostProblem(url, rules)
}

function formProblem(url: URL, rules: AddressRules): string | undefined {
  const schemes = rules.hasAllowedNetworks ? ['https:', 'http:'] : ['https:']
  if (!schemes.includes(url.protocol)) return 'The URL must begin with https://.'
  if (url.href.length > maxCharacters)
    return `The encoded URL is longer than ${maxCharacters} characters.`
  if (url.username || url.password) return 'The URL must not contain a user name or a password.'
  if (url.href.includes('#')) return 'The URL must not have a fragment (#).'
  // Servers of other protocols listen below 1024 and might run parts of an HTTP request as commands.
  const isAllowedPort = ['', '80', '443'].includes(url.port) || Number(url.port) >= 1024
  return isAllowedPort ? undefined : 'The port must be 80, 443, or 1024 and above.'
}

function hostProblem(url: URL, rules: AddressRules): string | undefined {
  const host = hostOf(url)
  if (isIP(host))
    return rules.isInAllowedNetwork(host)
      ? undefined
      : 'The host must be a name, not an IP address.'
  if (isLocalhost(host)) {
    const isAllowed = loopback.some((ip) => rules.isInAllowedNetwork(ip))
    return isAllowed ? undefined : 'The host is this machine, to which webhooks are not sent.'
  }
  const labels = host.split('.')
  if (labels.includes('') || host.length > 253) return 'The host is not a valid name.'
  if (rules.hasAllowedNetworks) return undefined
  const isInternal =
    labels.length === 1 || internalNames.some((name) => `.${host}`.endsWith(`.${name}`))
  return isInternal ? 'The host is not a name on the public internet.' : undefined
}

// Top-level names that are not on the public internet: RFC 6762, 8375 and 7686, `internal`, which ICANN reserved for
// private use, and common ones that ICANN will never delegate.
const internalNames = 'local home.arpa onion internal intranet private lan corp home'.split(' ')

/** Addresses of `localhost` and all names below it, regardless of DNS (RFC 6761, section 6.3). */
export const loopback = ['127.0.0.1', '::1']

export function isLocalhost(host: string): boolean {
  return `.${host}`.endsWith('.localhost')
}

/** Returns the host without the brackets of an IPv6 address and without the trailing dot of an absolute name. */
export function hostOf({ hostname: host }: { hostname: string }): string {
  if (host.startsWith('[')) return host.slice(1, -1)
  return host.endsWith('.') ? host.slice(0, -1) : host
}

/** Rules for addresses in canonical notation. Both functions return false for other text, such as `127.1`. */
export interface AddressRules {
  hasAllowedNetworks: boolean
  isAllowed(ip: string): boolean
  /** Returns true for an address in WEBHOOK_ALLOWED_NETWORKS. */
  isInAllowedNetwork(ip: string): boolean
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

// A public address that, inside Azure, reaches the virtual machine's host and exposes certificates.
const azureHost = '168.63.129.16'

/**
 * Creates rules that allow public addresses and `allowedNetworks`, but not the machine's own public addresses: local
 * services often trust connections that did not pass the firewall. Throws if a network is not a CIDR.
 */
export function createAddressRules(
  allowedNetworks: string[],
  ownAddresses: () => string[] = machineAddresses,
): AddressRules {
  const networks = allowedNetworks.map((network) => rangeOf(ipaddr.parseCIDR(network)))
  function isInAllowedNetwork(ip: string): boolean {
    const address = addressOf(ip)
    return (
      address !== undefined &&
      networks.some(([base, bits]) => address.kind() === base.kind() && address.match(base, bits))
    )
  }
  return {
    hasAllowedNetworks: networks.length > 0,
    isInAllowedNetwork,
    isAllowed: (ip) =>
      isInAllowedNetwork(ip) ||
      (isCanonicalPublicAddress(ip) && ip !== azureHost && !ownAddresses().includes(ip)),
  }
}

// Parses an address. IPv4-mapped IPv6 (`::ffff:10.0.0.1`) becomes IPv4, to which the connection goes. Refuses
// `::10.0.0.1`, which is not mapped although ipaddr.js treats it so, and zones (`%eth0`), which name an interface of
// this machine.
function addressOf(ip: string): Address | undefined {
  const isAmbiguous = ip.includes(':') && ip.includes('.') && !/^::ffff:[\d.]+$/i.test(ip)
  if (isIP(ip) === 0 || ip.includes('%') || isAmbiguous) return undefined
  return ipaddr.process(ip)
}

// Converts IPv4-mapped networks like addresses: `::ffff:10.0.0.0/104` becomes 10.0.0.0/8.
function rangeOf([base, bits]: [Address, number]): [Address, number] {
  const isMapped = base instanceof ipaddr.IPv6 && base.isIPv4MappedAddress() && bits >= 96
  return isMapped ? [base.toIPv4Address(), bits - 96] : [base, bits]
}

function machineAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap(
    (list) => list?.map(({ address }) => address) ?? [],
  )
}
