import { isIP } from 'node:net'
import type { onRequestHookHandler } from 'fastify'
import ipaddr from 'ipaddr.js'

// More than any chain of proxies has. Each entry is compared with every trusted network whenever the address is asked for.
const maxEntries = 16

/**
 * Cuts X-Forwarded-For after its last entry that is no address. Whoever wrote that entry is unknown, so what stands to
 * the left of it could be anybody's word. The client is then the last proxy that is known.
 */
export const believeAddresses: onRequestHookHandler = ({ raw: { headers } }, _reply, done) => {
  const sent = headers['x-forwarded-for']
  if (typeof sent === 'string') headers['x-forwarded-for'] = believable(sent)
  done()
}

function believable(header: string): string {
  const entries = header
    .split(',')
    .flatMap((entry) => entry.trim() || [])
    .slice(-maxEntries)
    .map(addressIn)
  return entries.slice(entries.lastIndexOf(undefined) + 1).join(', ')
}

const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/
const withPort = /^([\d.]+):\d{1,5}$/

/**
 * The address of an entry, without brackets and port, which some proxies add, and without a zone, which has a meaning on
 * the proxy alone. IPv4 inside IPv6 is IPv4. undefined for what is no address.
 */
function addressIn(entry: string): string | undefined {
  const bare = bracketed.exec(entry)?.[1] ?? withPort.exec(entry)?.[1] ?? entry
  const [address = ''] = bare.split('%')
  const version = isIP(address)
  if (version === 0) return undefined
  return version === 6 ? ipaddr.process(address).toString() : address
}
