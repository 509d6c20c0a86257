import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { codeOf, DeliveryFailure } from './failure.ts'
import { isLocalhost, loopback } from './url.ts'

export interface HostResolver {
  /** All addresses of a host (as url.ts gives it), none of them checked. Rejects with DeliveryFailure. */
  resolve(host: string): Promise<string[]>
  /** Ends what is under way. */
  close(): void
}

/** When one family has answered, how long the other may still take: some servers never answer AAAA. */
const otherFamilyMs = 300

/**
 * Resolves by DNS alone. Not by getaddrinfo: it runs in libuv's four threads, so that one customer's silent DNS
 * server would stop the look-ups of all others, and the file writes as well. The price is that /etc/hosts and search
 * domains do not count; receivers in a private network need a DNS name or an IP address.
 */
export function createHostResolver(options: { timeoutMs: number; servers?: string[] }): HostResolver {
  const { timeoutMs, servers } = options
  // c-ares waits twice this before the second try and doubles it for each further one: 2/14 + 4/14 + 8/14.
  const dns = new Resolver({ timeout: Math.ceil(timeoutMs / 14), tries: 3 })
  if (servers) dns.setServers(servers)
  return {
    async resolve(host) {
      if (isIP(host)) return [host]
      if (isLocalhost(host)) return loopback
      const addresses = await lookUp(dns, { host, timeoutMs })
      if (addresses.length > 0) return addresses
      throw new DeliveryFailure('dns', 'The host has no address.')
    },
    close: () => dns.cancel(),
  }
}

async function lookUp(
  dns: Resolver,
  { host, timeoutMs }: { host: string; timeoutMs: number },
): Promise<string[]> {
  const stop = new AbortController()
  const late = async (ms: number) => {
    await delay(ms, undefined, { signal: stop.signal })
    throw new DeliveryFailure('timeout', 'The DNS server of the host did not answer in time.')
  }
  const answers = [addressesOf(dns.resolve4(host)), addressesOf(dns.resolve6(host))]
  // Of the races below one side is left behind, and may still reject.
  for (const answer of answers) answer.catch(() => {})
  try {
    return await Promise.race([gather(answers), late(timeoutMs)])
  } finally {
    stop.abort()
  }
}

/** The answers of both families, or of one where the other fails or tarries. */
async function gather(answers: Promise<string[]>[]): Promise<string[]> {
  const first = await Promise.any(answers.map(async (answer) => nonEmpty(await answer))).catch(() => [])
  if (first.length === 0) return (await Promise.all(answers)).flat()
  const stop = new AbortController()
  const nothing = delay(otherFamilyMs, [], { signal: stop.signal }).catch(() => [])
  const all = await Promise.all(answers.map((answer) => Promise.race([answer.catch(() => []), nothing])))
  stop.abort()
  return all.flat()
}

function nonEmpty(addresses: string[]): string[] {
  if (addresses.length === 0) throw new Error('no address of this family')
  return addresses
}

/** No record of this family is an answer; that there is no such name at all, the other family says as well. */
async function addressesOf(answer: Promise<string[]>): Promise<string[]> {
  try {
    return await answer
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENODATA') return []
    if (code === 'ENOTFOUND') throw new DeliveryFailure('dns', 'The host does not exist.')
    if (code === 'ETIMEOUT')
      throw new DeliveryFailure('timeout', 'The DNS server of the host did not answer in time.')
    throw new DeliveryFailure('dns', 'The host cannot be resolved.')
  }
}
