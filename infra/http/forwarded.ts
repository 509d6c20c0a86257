import { isIP } from 'node:net'
import type { onRequestHookHandler } from 'fastify'

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
  const lastBad = entries.findLastIndex((entry) => isIP(entry) === 0)
  return entries.slice(lastBad + 1).join(', ')
}
