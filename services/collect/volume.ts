import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Budget, createBudget, overBudget } from '../../infra/access/budget.ts'
import { sourceOf } from '../../infra/access/source.ts'
import type { MissingProxy } from '../../infra/http/missing-proxy.ts'
import type { Clock } from '../../infra/ids.ts'
import { isLoopback } from '../../infra/ip/network.ts'

export interface VolumeLimits {
  /** Megabytes that may be sent in an hour: by one source, and with all keys of one organization. */
  sourceMbPerHour: number
  organizationMbPerHour?: number | undefined
  missingProxy?: Pick<MissingProxy, 'note'> | undefined
  /** Lets requests of this machine pass the limit of a source, for `tidegate simulate` under `tidegate dev`. */
  exemptsLoopback?: boolean
}

// What is recorded because of a request in addition to what was sent: its own event, and on average a decision about it.
const recordedBytes = 3 * 1024
const megabyte = 1_000_000
const proxyMissing =
  "All clients behind the server's reverse proxy share one limit, because TRUSTED_PROXIES does not name it."
// The part of the limit that may come at once. So an hour has at most the limit and this part of it.
const burstShare = 1 / 30

/**
 * Hook that bounds what the log takes, in this process. Units count requests only, so a source could fill it with the largest bodies.
 * The source pays first, so that one of them does not use up what its organization may send.
 */
export function limitVolume(app: FastifyInstance, limits: VolumeLimits & { clock: Clock }): void {
  const { clock, sourceMbPerHour, organizationMbPerHour, missingProxy, exemptsLoopback } = limits
  const ofSource = budgetOf(sourceMbPerHour, clock)
  const ofOrganization = organizationMbPerHour ? budgetOf(organizationMbPerHour, clock) : undefined
  app.addHook('preHandler', (request, _reply, done) => {
    const bytes = bytesOf(request)
    const organizationId = request.principal?.organizationId ?? ''
    const { ip, headers } = request
    const isExempt = exemptsLoopback && isLoopback(ip) && headers['x-forwarded-for'] === undefined
    const isProxied = missingProxy?.note(request)
    if (!isExempt && !ofSource.spend(sourceOf(ip), bytes))
      return done(overBudget(1, isProxied ? { message: proxyMissing } : {}))
    done((ofOrganization?.spend(organizationId, bytes) ?? true) ? undefined : overBudget())
  })
}

function budgetOf(mbPerHour: number, clock: Clock): Budget {
  const bytes = mbPerHour * megabyte
  return createBudget({ clock, perSecond: bytes / 3600, burst: bytes * burstShare })
}

function bytesOf({ body, headers, raw }: FastifyRequest): number {
  const ofBody = Buffer.isBuffer(body) ? body.length : Number(headers['content-length'] ?? 0)
  const ofHeaders = raw.rawHeaders.reduce((sum, text) => sum + text.length, 0)
  return ofBody + ofHeaders + recordedBytes
}
