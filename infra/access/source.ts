import ipaddr from 'ipaddr.js'

/**
 * An IPv4 address, also one carried in IPv6 (`::ffff:203.0.113.9`), or the /64 of an IPv6 address, which is what one
 * customer of an access network has. Anything else, as only a misconfigured proxy names, is one source altogether.
 */
export function sourceOf(ip: string): string {
  if (!ipaddr.isValid(ip)) return 'unknown'
  const address = ipaddr.process(ip)
  if (address instanceof ipaddr.IPv6) return address.parts.slice(0, 4).join(':')
  return address.toString()
}
