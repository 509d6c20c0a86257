import ipaddr from 'ipaddr.js'

/** The address as people write it: IPv4 where IPv6 only carries it (`::ffff:203.0.113.9`), else unchanged. */
export function plainAddress(ip: string): string {
  return ipaddr.isValid(ip) ? ipaddr.process(ip).toString() : ip
}

/** The network that an address is in: IPv4 /24, IPv6 /48 in hex; null for what is not an address. */
export function networkPrefix(ip: string): string | null {
  if (!ipaddr.isValid(ip)) return null
  const address = ipaddr.process(ip)
  const bytes = address.toByteArray()
  if (address.kind() === 'ipv4') return bytes.slice(0, 3).join('.')
  return Buffer.from(bytes.slice(0, 6)).toString('hex')
}

/** Whether it is an address, IPv4 or IPv6, that is in none of IANA's special-purpose ranges. */
export function isPublicAddress(ip: string): boolean {
  return ipaddr.isValid(ip) && ipaddr.parse(ip).range() === 'unicast'
}

/** The space that IANA gives out for IPv6; everything else is special or not in use. RFC 4291, section 2.4 */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether a caller may name it as somebody's address on the internet: public, and written in full, IPv4 as four
 * decimal numbers (no `127.1`, `0x7f000001`, `010.0.0.1`) and IPv6 without a zone (no `%eth0`).
 */
export function isPublicAddressInFull(text: string): boolean {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return isPublicAddress(text)
  if (text.includes('%') || !ipaddr.IPv6.isValid(text)) return false
  return isPublicAddress(text) && ipaddr.IPv6.parse(text).match(globalUnicast)
}
