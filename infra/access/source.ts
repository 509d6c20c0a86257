import ipaddr from 'ipaddr.js'

/**
 * Returns the key of an address in per-source limits: the IPv4 address (also if mapped to IPv6, `::ffff:203.0.113.9`),
 * or the /64 of an IPv6 address, which an access network assigns to one customer. Invalid addresses, which only a
 * misconfigured proxy sends, share one key.
 */
export function sourceOf(ip: string): string {
  if (!ipaddr.isValid(ip)) return 'unknown'
  const address = ipaddr.process(ip)
  if (address instanceof ipaddr.IPv6) return address.parts.slice(0, 4).join(':')
  return address.toString()
}
