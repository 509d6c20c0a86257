import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import { isPublicAddressInFull } from '../ip/address.ts'

/** Where webhooks may be sent. Both questions take an address in full (no `127.1`); of anything else the answer is no. */
export interface AddressRules {
  /** Whether any network is allowed that would not be otherwise. */
  hasExceptions: boolean
  /** Public and not this machine, or an exception. */
  isAllowed(ip: string): boolean
  /** In a network that the operator allows although webhooks would not be sent there. */
  isException(ip: string): boolean
}

type Range = [ipaddr.IPv4 | ipaddr.IPv6, number]

/** Public to IANA, but Azure's host answers there from inside every virtual machine, with its certificates. */
const azureHost = '168.63.129.16'

/**
 * Rules with exceptions for `allowedNetworks` (CIDRs). Throws when one is none. `ownAddresses` are refused although
 * they may be public: what listens on this machine often trusts whoever reaches it without passing the firewall.
 */
export function createAddressRules(
  allowedNetworks: string[],
  ownAddresses: () => string[] = machineAddresses,
): AddressRules {
  const exceptions = allowedNetworks.map((network) => rangeOf(ipaddr.parseCIDR(network)))
  function isException(ip: string): boolean {
    const address = addressOf(ip)
    return address !== undefined && exceptions.some((range) => isIn(address, range))
  }
  return {
    hasExceptions: exceptions.length > 0,
    isException,
    isAllowed: (ip) => isException(ip) || (isPublicReceiver(ip) && !ownAddresses().includes(ip)),
  }
}

function isPublicReceiver(ip: string): boolean {
  return isPublicAddressInFull(ip) && ip !== azureHost
}

/**
 * IPv4 that IPv6 carries (`::ffff:10.0.0.1`) counts as IPv4, since the connection goes there. ipaddr.js would take
 * `::10.0.0.1`, which is no such address, for one as well; a zone (`%eth0`) names an interface of this machine.
 */
function addressOf(ip: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const isOddForm = ip.includes(':') && ip.includes('.') && !/^::ffff:[\d.]+$/i.test(ip)
  if (isIP(ip) === 0 || ip.includes('%') || isOddForm) return undefined
  return ipaddr.process(ip)
}

/** `::ffff:10.0.0.0/104` is 10.0.0.0/8, as addresses of it are seen. */
function rangeOf([base, bits]: Range): Range {
  const isMapped = base instanceof ipaddr.IPv6 && base.isIPv4MappedAddress() && bits >= 96
  return isMapped ? [base.toIPv4Address(), bits - 96] : [base, bits]
}

function isIn(address: ipaddr.IPv4 | ipaddr.IPv6, [base, bits]: Range): boolean {
  return address.kind() === base.kind() && address.match(base, bits)
}

function machineAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? [])
}
