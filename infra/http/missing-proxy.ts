import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { sourceOf } from '../access/source.ts'
import type { Clock } from '../ids.ts'
import type { Logger } from '../telemetry.ts'

/** Detects a reverse proxy that is missing from TRUSTED_PROXIES, whose clients therefore all share one rate limit. */
export interface MissingProxyDetector {
  /** Counts a request. Returns true if it came through such a proxy. */
  observe(request: FastifyRequest): boolean
  /** Returns a sentence for the operator; undefined if no request came through such a proxy. */
  warning(request?: FastifyRequest): string | undefined
}

// Lead at which the candidate is reported: the requests of about six sessions.
const minLead = 20
const maxLead = 500
const logEveryMs = 60 * 60 * 1000

/** Finds the proxy by majority vote (Boyer–Moore): a candidate's lead grows only while most requests are its own. */
export function createMissingProxyDetector({
  logger,
  clock,
}: {
  logger: Logger
  clock: Clock
}): MissingProxyDetector {
  let candidate: string | undefined
  let lead = 0
  let loggedAt = Number.NEGATIVE_INFINITY

  return {
    observe(request) {
      const { ip } = request
      const isProxyLike = hasIgnoredHeaders(request) || isPrivate(ip)
      if (isProxyLike && lead === 0) candidate = ip
      const isCandidate = isProxyLike && ip === candidate
      lead = isCandidate ? Math.min(lead + 1, maxLead) : Math.max(lead - 1, 0)
      if (!isCandidate || lead < minLead) return false
      if (clock() - loggedAt >= logEveryMs) {
        loggedAt = clock()
        logger.warn(
          { address: loggableAddress(ip) },
          'proxy missing from TRUSTED_PROXIES: its clients share one rate limit',
        )
      }
      return true
    },
    warning(request) {
      const winner = lead < minLead ? undefined : candidate
      const ip = request && hasIgnoredHeaders(request) ? request.ip : winner
      if (ip === undefined) return undefined
      const proxy = loggableAddress(ip) ?? 'the public address of your reverse proxy'
      return `Add ${proxy} to TRUSTED_PROXIES: all clients behind it share one limit.`
    },
  }
}

// Entries to the left of the client in X-Forwarded-For are not trusted.
function hasIgnoredHeaders({ headers, ip }: FastifyRequest): boolean {
  const [client] = String(headers['x-forwarded-for'] ?? headers['x-real-ip'] ?? '').split(',', 1)
  return client !== undefined && client.trim() !== '' && sourceOf(client.trim()) !== sourceOf(ip)
}

const rangeOf = (ip: string) => (ipaddr.isValid(ip) ? ipaddr.process(ip).range() : '')
const isPrivate = (ip: string) =>
  ['private', 'uniqueLocal', 'carrierGradeNat'].includes(rangeOf(ip))

// Returns undefined for public addresses, which may belong to a person.
const loggableAddress = (ip: string) =>
  isPrivate(ip) || rangeOf(ip) === 'loopback' ? ipaddr.process(ip).toString() : undefined
