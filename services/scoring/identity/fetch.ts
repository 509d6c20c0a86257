import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { type AddressRules, webhookUrlProblem } from '../../../infra/safe-http/addresses.ts'
import { createWebhookClient } from '../../../infra/safe-http/client.ts'
import { systemCode } from '../../../infra/thrown.ts'
import { directoryKeys } from '../../../infra/wire/web-bot-auth/keys.ts'
import type { LookupResult, LookupSubject } from './tables.ts'

/** Never rejects. */
export type FetchSubject = (subject: LookupSubject) => Promise<LookupResult>

export interface FetchOptions {
  rules: AddressRules
  /** Of a look-up as a whole, default 5000. */
  timeoutMs?: number
  dnsServers?: string[]
  ca?: string
}

export interface Fetcher {
  fetch: FetchSubject
  close(): Promise<void>
}

// A directory of a hundred keys has some 15 KB.
const maxDirectoryBytes = 64 * 1024

export function createFetcher(options: FetchOptions): Fetcher {
  const { rules, timeoutMs = 5000 } = options
  const client = createWebhookClient({ ...options, dnsTimeoutMs: timeoutMs, timeoutMs })

  async function directory(url: string): Promise<LookupResult> {
    if (webhookUrlProblem(url, rules) !== undefined) return { failure: 'address' }
    const outcome = await client.get({ url, maxBytes: maxDirectoryBytes })
    if (outcome.kind === 'failure') return { failure: outcome.reason }
    // A redirect is not followed, because it may lead inside.
    if (outcome.status !== 200) return { failure: `status ${outcome.status}` }
    if (outcome.body.length >= maxDirectoryBytes) return { failure: 'size' }
    const keys = directoryKeys(outcome.body.toString('utf8'))
    return keys ? { keys } : { failure: 'content' }
  }

  return {
    fetch: (subject) => (isIP(subject) ? hostName(subject, options) : directory(subject)),
    close: () => client.close(),
  }
}

const mostNames = 4

/**
 * The first host name of the address that leads back to it. DNS that says that there is none is an answer; DNS that does
 * not answer is none.
 */
async function hostName(
  ip: string,
  { timeoutMs = 5000, dnsServers }: FetchOptions,
): Promise<LookupResult> {
  const dns = new Resolver({ timeout: Math.ceil(timeoutMs / 4), tries: 2 })
  if (dnsServers) dns.setServers(dnsServers)
  const timer = setTimeout(() => dns.cancel(), timeoutMs)
  try {
    // Not by `reverse`, which takes a failure of DNS for an address without names.
    const names = await dns.resolvePtr(pointerName(ip)).catch(noneOf)
    const forward = (name: string) =>
      (isIP(ip) === 4 ? dns.resolve4(name) : dns.resolve6(name)).catch(noneOf)
    const some = names.slice(0, mostNames)
    const leads = await Promise.all(
      some.map(async (name) => (await forward(name)).some(isSame(ip))),
    )
    return { host: some.find((_, index) => leads[index])?.toLowerCase() ?? null }
  } catch (error) {
    return { failure: systemCode(error) ?? 'dns' }
  } finally {
    clearTimeout(timer)
  }
}

// That a name or an address has no record is what DNS says; all else is no answer.
function noneOf(error: unknown): string[] {
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

const isSame = (ip: string) => (other: string) =>
  ipaddr.parse(ip).toString() === ipaddr.parse(other).toString()
