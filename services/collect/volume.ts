import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Budget, createBudget, rateLimitError } from '../../infra/access/budget.ts'
import { sourceOf } from '../../infra/access/source.ts'
import type { MissingProxy } from '../../infra/http/missing-proxy.ts'
import type { Clock } from '../../infra/ids.ts'
import { isLoopback } from '../../infra/ip/network.ts'

export interface VolumeLimits {
  /** Megabytes per hour: from one source, and with all keys of an organization. */
  sourceMbPerHour: number
  organizationMbPerHour?: number | undefined
  missingProxy?: Pick<MissingProxy, 'observe'> | undefined
  /** Exempts requests of this machine from the limit of a source, for `tidegate simulate` under `tidegate dev`. */
  exemptsLoopback?: boolean
}

// Added to the size of each request, for its event and on average one decision.
const overheadBytes = 3 * 1024
const megabyte = 1_000_000
const proxyMissing =
  "All clients behind the server's reverse proxy share one limit, because TRUSTED_PROXIES does not name it."
// Part of the hourly limit that may arrive at once, in addition to the limit.
const burstShare = 1 / 30

/**
 * Adds a hook that limits the bytes recorded on the log, in this process. Rate limits count requests, so without it a
 * source could fill the log with maximum-size bodies. The source's budget is charged first, so that one source cannot
 * use up the budget of its organization.
 */
export function limitVolume(app: FastifyInstance, limits: VolumeLimits & { clock: Clock }): void {
  const { clock, sourceMbPerHour, organizationMbPerHour, missingProxy, exemptsLoopback } = limits
  const sourceBudget = budgetOf(sourceMbPerHour, clock)
  const organizationBudget = organizationMbPerHour
    ? budgetOf(organizationMbPerHour, clock)
    : undefined
  app.addHook('preHandler', (request, _reply, done) => {
    const bytes = bytesOf(request)
    const organizationId = request.principal?.organizationId ?? ''
    const { ip, headers } = request
    const isExempt = exemptsLoopback && isLoopback(ip) && headers['x-forwarded-for'] === undefined
    const isProxied = missingProxy?.observe(request)
    if (!isExempt && !sourceBudget.spend(sourceOf(ip), bytes))
      return done(rateLimitError(1, isProxied ? { message: proxyMissing } : {}))
    done((organizationBudget?.spend(organizationId, bytes) ?? true) ? undefined : rateLimitError())
  })
}

function budgetOf(mbPerHour: number, clock: Clock): Budget {
  const bytes = mbPerHour * megabyte
  return createBudget({ clock, perSecond: bytes / 3600, burst: bytes * burstShare })
}

function bytesOf({ body, headers, raw }: FastifyRequest): number {
  const bodyBytes = Buffer.isBuffer(body) ? body.length : Number(headers['content-length'] ?? 0)
  const headerBytes = raw.rawHeaders.reduce((sum, text) => sum + text.length, 0)
  return bodyBytes + headerBytes + overheadBytes
}
