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
