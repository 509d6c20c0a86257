import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { sourceOf } from '../access/source.ts'
import type { Clock } from '../ids.ts'
import type { Logger } from '../telemetry.ts'

/** Finds a reverse proxy that TRUSTED_PROXIES lacks, so that all clients behind it count as one source. */
export interface MissingProxy {
  /** Counts a request of a client. Returns whether it came through such a proxy. */
  note(request: FastifyRequest): boolean
  /** Returns what the operator has to do; undefined if no request came through such a proxy. */
  warning(request?: FastifyRequest): string | undefined
}

const windowSize = 1000
// The requests of about six sessions.
const fewest = 20
const logEveryMs = 60 * 60 * 1000

export function createMissingProxy({ logger, clock }: { logger: Logger; clock: Clock }): MissingProxy {
  let counts = new Map<string, number>()
  let total = 0
  let proxy: string | undefined
  let loggedAt = Number.NEGATIVE_INFINITY

  function suspect(source: string): void {
    proxy = source
    if (clock() - loggedAt < logEveryMs) return
    loggedAt = clock()
    logger.warn({ address: named(source) }, 'TRUSTED_PROXIES lacks a proxy: its clients count as one source')
  }

  return {
    note(request) {
      if (total >= windowSize) {
        if ((counts.get(proxy ?? '') ?? 0) <= total / 2) proxy = undefined
        counts = new Map()
        total = 0
      }
      total++
      const source = sourceOf(request.ip)
      if (!hasIgnoredHeaders(request) && !isPrivate(request.ip)) return false
      const count = (counts.get(source) ?? 0) + 1
      counts.set(source, count)
      if (count >= fewest && count > total / 2) suspect(source)
      return proxy === source
    },
    warning(request) {
      const source = request && hasIgnoredHeaders(request) ? sourceOf(request.ip) : proxy
      if (source === undefined) return undefined
      const what = named(source) ?? 'a public address that forwards requests'
      return `add ${what} to TRUSTED_PROXIES: all clients behind it count as one source`
    },
  }
}

// Entries to the left of the client in X-Forwarded-For are not trusted.
function hasIgnoredHeaders({ headers, ip }: FastifyRequest): boolean {
  const [client] = String(headers['x-forwarded-for'] ?? headers['x-real-ip'] ?? '').split(',', 1)
  return client !== undefined && client.trim() !== '' && sourceOf(client.trim()) !== sourceOf(ip)
}

const rangeOf = (ip: string) => (ipaddr.isValid(ip) ? ipaddr.process(ip).range() : '')
const isPrivate = (ip: string) => ['private', 'uniqueLocal', 'carrierGradeNat'].includes(rangeOf(ip))

// A public address may be that of a person.
const named = (source: string) => (isPrivate(source) || rangeOf(source) === 'loopback' ? source : undefined)
