import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { codeOf, DeliveryFailure } from './failure.ts'
import { isLocalhost, loopback } from './url.ts'

/** All addresses of a host (as url.ts gives it), none of them checked. Rejects with DeliveryFailure. */
export type HostResolver = (host: string, signal: AbortSignal) => Promise<string[]>

/** When one family has answered, how long the other may still take: some servers never answer AAAA. */
const otherFamilyMs = 300

/**
 * Resolves by DNS alone. Not by getaddrinfo: it runs in libuv's four threads, so that one customer's silent DNS
 * server would stop the look-ups of all others, and access to files as well. The price is that /etc/hosts and search
 * domains do not count; receivers in a private network need a full DNS name or an IP address.
 */
export function createHostResolver(options: { timeoutMs: number; servers?: string[] }): HostResolver {
  return async (host, signal) => {
    if (isIP(host)) return [host]
    if (isLocalhost(host)) return loopback
    return await lookUp(host, { ...options, signal })
  }
}

interface LookUp {
  timeoutMs: number
  servers?: string[]
  signal: AbortSignal
}

async function lookUp(host: string, { timeoutMs, servers, signal }: LookUp): Promise<string[]> {
  // One for each look-up, since cancel() ends all of a resolver's, and so that changes of resolv.conf count.
  // c-ares waits twice the time before the second try and doubles it for each further one: 2/14 + 4/14 + 8/14.
  const dns = new Resolver({ timeout: Math.ceil(timeoutMs / 14), tries: 3 })
  if (servers) dns.setServers(servers)
  const cancel = () => dns.cancel()
  let timer = setTimeout(cancel, timeoutMs)
  signal.addEventListener('abort', cancel)
  const family = async (answer: Promise<string[]>) => {
    const addresses = await addressesOf(answer)
    if (addresses.length === 0) return addresses
    clearTimeout(timer)
    timer = setTimeout(cancel, otherFamilyMs)
    return addresses
  }
  const answers = await Promise.allSettled([family(dns.resolve4(host)), family(dns.resolve6(host))])
  clearTimeout(timer)
  signal.removeEventListener('abort', cancel)
  return together(answers)
}

/** The addresses of both families, or of one where the other failed. */
function together(answers: PromiseSettledResult<string[]>[]): string[] {
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  if (addresses.length > 0) return addresses
  for (const answer of answers) if (answer.status === 'rejected') throw answer.reason
  throw new DeliveryFailure('dns', 'The host has no address.')
}

/** No record of this family is an answer as well. */
async function addressesOf(answer: Promise<string[]>): Promise<string[]> {
  try {
    return await answer
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENODATA') return []
    if (code === 'ENOTFOUND') throw new DeliveryFailure('dns', 'The host does not exist.')
    if (code === 'ETIMEOUT' || code === 'ECANCELLED') {
      throw new DeliveryFailure('timeout', 'The DNS server of the host did not answer in time.')
    }
    throw new DeliveryFailure('dns', 'The host cannot be resolved.')
  }
}
