import { isIPv4 } from 'node:net'
import type { FastifyRequest } from 'fastify'

const maxHeaders = 100
const maxHeaderLength = 1024
const maxHostLength = 253
const mappedPrefix = '::ffff:'

/** The client's address as recorded: IPv4 where an IPv6 socket only carries it (`::ffff:203.0.113.9`). */
export function ipAddressOf({ ip }: Pick<FastifyRequest, 'ip'>): string {
  if (!ip.toLowerCase().startsWith(mappedPrefix)) return ip
  const carried = ip.slice(mappedPrefix.length)
  return isIPv4(carried) ? carried : ip
}

/** The User-Agent header, bounded; empty when there is none. */
export function userAgentOf({ headers }: Pick<FastifyRequest, 'headers'>): string {
  return headers['user-agent']?.slice(0, maxHeaderLength) ?? ''
}

/** The Accept-Language header, bounded. */
export function acceptLanguageOf({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  return headers['accept-language']?.slice(0, maxHeaderLength) ?? null
}

/** Sec-CH-UA request headers by lower-case name. */
export function clientHintsOf({ headers }: Pick<FastifyRequest, 'headers'>): Record<string, string> {
  const hints: Record<string, string> = {}
  for (const name in headers) {
    const value = name.startsWith('sec-ch-ua') ? headers[name] : undefined
    if (typeof value === 'string') hints[name] = value.slice(0, maxHeaderLength)
  }
  return hints
}

/** Header names in the order and case received: both tell HTTP stacks apart. */
export function headerOrderOf({ raw }: Pick<FastifyRequest, 'raw'>): string[] {
  return raw.rawHeaders.filter((_, index) => index % 2 === 0).slice(0, maxHeaders)
}

/**
 * The host that the Signature-Agent header names: `"https://agent.example"`, or `sig1="https://agent.example"` since
 * draft-meunier-web-bot-auth-architecture-04. Null without the header or where it names no https address.
 */
export function signatureAgentOf({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  const header = headers['signature-agent']
  if (typeof header !== 'string') return null
  const url = URL.parse(/"([^"]*)"/.exec(header.slice(0, maxHeaderLength))?.[1] ?? '')
  return url?.protocol === 'https:' && url.hostname.length <= maxHostLength ? url.hostname : null
}
