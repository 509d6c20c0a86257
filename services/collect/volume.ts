import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Budget, createBudget, rateLimitError } from '../../infra/access/budget.ts'
import { sourceOf } from '../../infra/access/source.ts'
import type { MissingProxyDetector } from '../../infra/http/missing-proxy.ts'
import type { Clock } from '../../infra/ids.ts'
import { isLoopback } from '../../infra/ip/network.ts'

export interface VolumeLimits {
  /** Megabytes per hour from one source. */
  sourceMbPerHour: number
  /** Megabytes per hour with all keys of an organization. */
  organizationMbPerHour?: number | undefined
  missingProxy?: Pick<MissingProxyDetector, 'observe'> | undefined
  /** Exempts loopback requests from the source limit, for `tidegate simulate` under `tidegate dev`. */
  exemptsLoopback?: boolean
}

// Estimate added to the size of each request for its event and, on average, one decision.
const overheadBytes = 3 * 1024
const megabyte = 1_000_000
const missingProxyMessage =
  "All clients behind the server's reverse proxy share one limit, because TRUSTED_PROXIES does not name it."
// Burst allowed on top of the hourly limit, as a fraction of it.
const burstFraction = 1 / 30

/**
 * Adds a hook that limits the bytes per hour that this process records on the log. Rate limits only count requests, so
 * a source could otherwise fill the log with maximum-size bodies. The source's budget is charged first, so one source
 * cannot use up the budget of its organization.
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
      return done(rateLimitError(1, isProxied ? { message: missingProxyMessage } : {}))
    done((organizationBudget?.spend(organizationId, bytes) ?? true) ? undefined : rateLimitError())
  })
}

function budgetOf(mbPerHour: number, clock: Clock): Budget {
  const bytes = mbPerHour * megabyte
  return createBudget({ clock, perSecond: bytes / 3600, burst: bytes * burstFraction })
}

function bytesOf({ body, headers, raw }: FastifyRequest): number {
  const bodyBytes = Buffer.isBuffer(body) ? body.length : Number(headers['content-length'] ?? 0)
  const headerBytes = raw.rawHeaders.reduce((sum, text) => sum + text.length, 0)
  return bodyBytes + headerBytes + overheadBytes
}
