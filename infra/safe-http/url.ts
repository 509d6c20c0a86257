import { isIP } from 'node:net'
import type { AddressRules } from './address-rules.ts'

const maxCharacters = 2000

/**
 * What is wrong with a receiver's URL, as a sentence; undefined when nothing is. This only spares people typing
 * mistakes and attempts that are bound to fail: what a name resolves to is checked when a delivery is sent, since
 * it may change at any time. The URL counts as the WHATWG parser reads it, so no other notation of a host gets past.
 */
export function webhookUrlProblem(text: string, rules: AddressRules): string | undefined {
  if (text.length > maxCharacters) return `The URL is longer than ${maxCharacters} characters.`
  // The parser would drop or replace these, so that people and the parser read different URLs.
  if (/[\s\\\p{Cc}]/u.test(text)) return 'The URL contains white space or a backslash.'
  const url = URL.parse(text)
  if (!url) return 'This is not an absolute URL.'
  return formProblem(url, rules) ?? hostProblem(url, rules)
}

function formProblem(url: URL, rules: AddressRules): string | undefined {
  const schemes = rules.hasExceptions ? ['https:', 'http:'] : ['https:']
  if (!schemes.includes(url.protocol)) return 'The URL must begin with https://.'
  if (url.href.length > maxCharacters) return `The encoded URL is longer than ${maxCharacters} characters.`
  if (url.username || url.password) return 'The URL must not contain a user name or a password.'
  if (url.href.includes('#')) return 'The URL must not have a fragment (#).'
  // Below 1024 stand other protocols, which an HTTP request might mean something to.
  const isPortFine = ['', '80', '443'].includes(url.port) || Number(url.port) >= 1024
  return isPortFine ? undefined : 'The port must be 80, 443, or 1024 and above.'
}

function hostProblem(url: URL, rules: AddressRules): string | undefined {
  const host = hostOf(url)
  if (isIP(host)) return rules.isException(host) ? undefined : 'The host must be a name, not an IP address.'
  if (isLocalhost(host)) {
    const isAllowed = loopback.some((ip) => rules.isException(ip))
    return isAllowed ? undefined : 'The host is this machine, to which webhooks are not sent.'
  }
  const labels = host.split('.')
  if (labels.includes('') || host.length > 253) return 'The host is not a valid name.'
  if (rules.hasExceptions) return undefined
  const isInternal = labels.length === 1 || internalNames.some((name) => `.${host}`.endsWith(`.${name}`))
  return isInternal ? 'The host is not a name on the public internet.' : undefined
}

/** RFC 6762, 8375, 7686; `internal` is ICANN's for private use, and the last ones it will never delegate. */
const internalNames = [
  'local',
  'home.arpa',
  'onion',
  'internal',
  'intranet',
  'private',
  'lan',
  'corp',
  'home',
]

/** What `localhost` and all names below it mean, whatever DNS says. RFC 6761, section 6.3 */
export const loopback = ['127.0.0.1', '::1']

/** Whether the host, as hostOf gives it, is `localhost` or below it. */
export function isLocalhost(host: string): boolean {
  return `.${host}`.endsWith('.localhost')
}

/** The host without the brackets of an IPv6 address and without the dot that ends an absolute name. */
export function hostOf(url: URL): string {
  const host = url.hostname
  if (host.startsWith('[')) return host.slice(1, -1)
  return host.endsWith('.') ? host.slice(0, -1) : host
}
