import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { type AddressRules, webhookUrlProblem } from '../../../infra/safe-http/addresses.ts'
import { createWebhookClient } from '../../../infra/safe-http/client.ts'
import { systemCode } from '../../../infra/thrown.ts'
import { directoryKeys } from '../../../infra/wire/web-bot-auth/keys.ts'
import type { LookupResult, LookupSubject } from './tables.ts'

/** Fetches a key directory or looks up a host name. Never rejects: a failure is a result. */
export type FetchSubject = (subject: LookupSubject) => Promise<LookupResult>

export interface FetchOptions {
  rules: AddressRules
  /** Timeout of a whole lookup. Default: 5000. */
  timeoutMs?: number
  dnsServers?: string[]
  ca?: string
}

export interface Fetcher {
  fetch: FetchSubject
  close(): Promise<void>
}

// A directory with a hundred keys takes about 15 KB.
const maxDirectoryBytes = 64 * 1024

export function createFetcher(options: FetchOptions): Fetcher {
  const { rules, timeoutMs = 5000 } = options
  const client = createWebhookClient({ ...options, dnsTimeoutMs: timeoutMs, timeoutMs })

  async function fetchDirectory(url: string): Promise<LookupResult> {
    if (webhookUrlProblem(url, rules) !== undefined) return { failure: 'address' }
    const outcome = await client.get({ url, maxBytes: maxDirectoryBytes })
    if (outcome.kind === 'failure') return { failure: outcome.reason }
    // Don't follow redirects: they could point into the private network.
    if (outcome.status !== 200) return { failure: `status ${outcome.status}` }
    if (outcome.body.length >= maxDirectoryBytes) return { failure: 'size' }
    const keys = directoryKeys(outcome.body.toString('utf8'))
    return keys ? { keys } : { failure: 'content' }
  }

  return {
    fetch: (subject) => (isIP(subject) ? lookUpHost(subject, options) : fetchDirectory(subject)),
    close: () => client.close(),
  }
}

const maxNames = 4

/**
 * Returns the address's first host name that resolves back to it (forward-confirmed reverse DNS), or null if DNS has
 * none. Returns a failure if DNS doesn't respond.
 */
async function lookUpHost(
  ip: string,
  { timeoutMs = 5000, dnsServers }: FetchOptions,
): Promise<LookupResult> {
  const dns = new Resolver({ timeout: Math.ceil(timeoutMs / 4), tries: 2 })
  if (dnsServers) dns.setServers(dnsServers)
  const timer = setTimeout(() => dns.cancel(), timeoutMs)
  try {
    // Don't use `reverse`, which reports a DNS failure as an address without names.
    const names = await dns.resolvePtr(pointerName(ip)).catch(emptyIfNoRecord)
    const resolve = (name: string) =>
      (isIP(ip) === 4 ? dns.resolve4(name) : dns.resolve6(name)).catch(emptyIfNoRecord)
    const candidates = names.slice(0, maxNames)
    const isConfirmed = await Promise.all(
      candidates.map(async (name) => (await resolve(name)).some(isSameAddress(ip))),
    )
    return { host: candidates.find((_, index) => isConfirmed[index])?.toLowerCase() ?? null }
  } catch (error) {
    return { failure: systemCode(error) ?? 'dns' }
  } finally {
    clearTimeout(timer)
  }
}

// Returns an empty list if DNS says that there is no record. Rethrows any other error.
function emptyIfNoRecord(error: unknown): string[] {
  if (['ENOTFOUND', 'ENODATA'].includes(systemCode(error) ?? '')) return []
  throw error
}

// RFC 1035, section 3.5, and RFC 3596, section 2.5
function pointerName(ip: string): string {
  const address = ipaddr.parse(ip)
  const bytes = address.toByteArray().reverse()
  if (address.kind() === 'ipv4') return `${bytes.join('.')}.in-addr.arpa`
  return `${bytes.map((byte) => `${(byte & 15).toString(16)}.${(byte >> 4).toString(16)}`).join('.')}.ip6.arpa`
}

const isSameAddress = (ip: string) => (other: string) =>
  ipaddr.parse(ip).toString() === ipaddr.parse(other).toString()
