import { isIP } from 'node:net'
import type { onRequestHookHandler } from 'fastify'
import ipaddr from 'ipaddr.js'

// More than any proxy chain has. Limited because each entry is compared with every trusted network.
const maxEntries = 16

/**
 * onRequest hook that removes the entries of X-Forwarded-For up to the last one that is not an address: nobody knows
 * who wrote that entry, so those to its left cannot be trusted. The proxy in the next entry then counts as the client.
 */
export const trimForwardedFor: onRequestHookHandler = ({ raw: { headers } }, _reply, done) => {
  const header = headers['x-forwarded-for']
  if (typeof header === 'string') headers['x-forwarded-for'] = validEntries(header)
  done()
}

function validEntries(header: string): string {
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
 * Returns the address in an entry without brackets, port and zone, which some proxies add. IPv4-mapped IPv6 becomes
 * IPv4. Returns undefined if there is no address.
 */
function addressIn(entry: string): string | undefined {
  const bare = bracketed.exec(entry)?.[1] ?? withPort.exec(entry)?.[1] ?? entry
  const [address = ''] = bare.split('%')
  const version = isIP(address)
  if (version === 0) return undefined
  return version === 6 ? ipaddr.process(address).toString() : address
}
