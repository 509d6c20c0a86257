import { createLru } from '../../../infra/lru.ts'
import { type DueEndpoint, maxPerEndpoint, type Quota } from '../leases.ts'

/*
 * Adaptive concurrency limits per endpoint (additive increase, multiplicative decrease), and the fair allocation of
 * request slots to endpoints. Counts only the requests of this process.
 */

export const maxRequests = 256
// Low, because an endpoint without a request so far may be down.
const initialLimit = 2
const slowMs = 1000
// Pause after a request without a response; doubles with each one.
const pauseRangeMs = { min: 50, max: 1000 }
const maxEndpoints = 10_000
// Fractions of the capacity: limits for all slow endpoints and for one organization, and a reserve for endpoints with
// nothing in flight.
const fractions = { slow: 1 / 2, organization: 1 / 4, reserved: 1 / 4 }

interface Endpoint {
  organizationId: string
  limit: number
  running: number
  /** True if the last request took longer than `slowMs` or got no response. */
  isSlow: boolean
  /** Time when the last request ended, or when the first one in flight began; milliseconds of `now`. */
  stalledSince: number
  pauseMs: number
  /** Sequence number of the endpoint's last quota. */
  quotaNumber: number
}

const newEndpoint: Endpoint = {
  organizationId: '',
  limit: initialLimit,
  running: 0,
  isSlow: false,
  stalledSince: 0,
  pauseMs: 0,
  quotaNumber: 0,
}

export interface RequestEnd {
  gotResponse: boolean
  durationMs: number
}

/** Raises the limit by one after a response, and halves it without one. */
export function nextLimit(
  { limit, pauseMs }: Pick<Endpoint, 'limit' | 'pauseMs'>,
  { gotResponse, durationMs }: RequestEnd,
): Pick<Endpoint, 'limit' | 'pauseMs' | 'isSlow'> {
  return {
    limit: gotResponse ? Math.min(limit + 1, maxPerEndpoint) : Math.max(1, Math.floor(limit / 2)),
    isSlow: !gotResponse || durationMs > slowMs,
    pauseMs: gotResponse ? 0 : Math.min(Math.max(2 * pauseMs, pauseRangeMs.min), pauseRangeMs.max),
  }
}

export interface ConcurrencyLimits {
  onBegin(endpointId: string): void
  onEnd(endpointId: string, end?: RequestEnd): void
  /**
   * Divides `freeSlots` among the endpoints. Each slot goes to the endpoint with the fewest requests in flight; ties go
   * to the one that has waited longest since its last quota, so that none starves. `hasMore` is true if some due
   * deliveries got no slot.
   */
  allocate(due: readonly DueEndpoint[], freeSlots: number): { quotas: Quota[]; hasMore: boolean }
}

export function createConcurrencyLimits({
  capacity = maxRequests,
  now = () => performance.now(),
} = {}): ConcurrencyLimits {
  const endpoints = createLru<string, Endpoint>(maxEndpoints)
  let quotasGranted = 0

  const endpointOf = (id: string) => endpoints.get(id) ?? newEndpoint
  const change = (id: string, changes: Partial<Endpoint>) =>
    endpoints.set(id, { ...endpointOf(id), ...changes })

  // Detects stalled requests long before they time out.
  const isSlowNow = ({ isSlow, running, stalledSince }: Endpoint) =>
    isSlow || (running > 0 && now() - stalledSince > slowMs)

  function demandOf({ endpointId, organizationId, due }: DueEndpoint): Demand {
    const endpoint = endpointOf(endpointId)
    const { limit, running, stalledSince, pauseMs, quotaNumber } = endpoint
    const max = now() < stalledSince + pauseMs ? 0 : Math.min(limit - running, due)
    return {
      endpointId,
      organizationId,
      running,
      quotaNumber,
      isSlow: isSlowNow(endpoint),
      max,
      granted: 0,
    }
  }

  return {
    onBegin(id) {
      const { running, stalledSince } = endpointOf(id)
      change(id, { running: running + 1, stalledSince: running === 0 ? now() : stalledSince })
    },
    onEnd(id, end) {
      const endpoint = endpointOf(id)
      const running = Math.max(0, endpoint.running - 1)
      change(id, { running, stalledSince: now(), ...(end && nextLimit(endpoint, end)) })
    },
    allocate(due, freeSlots) {
      const inFlight = [...endpoints.values()].map((endpoint) => ({
        ...endpoint,
        isSlow: isSlowNow(endpoint),
      }))
      const demands = due.map(demandOf).toSorted((a, b) => a.quotaNumber - b.quotaNumber)
      grantSlots(demands, { inFlight, capacity, free: freeSlots })
      const served = demands.filter(({ granted }) => granted > 0)
      for (const { endpointId, organizationId } of served)
        change(endpointId, { organizationId, quotaNumber: ++quotasGranted })
      const dueCount = due.reduce((sum, endpoint) => sum + endpoint.due, 0)
      const grantedCount = served.reduce((sum, { granted }) => sum + granted, 0)
      return {
        quotas: served.map(({ endpointId, granted: max }) => ({ endpointId, max })),
        hasMore: grantedCount < dueCount,
      }
    },
  }
}

type InFlight = Pick<Endpoint, 'organizationId' | 'running' | 'isSlow'>

interface Demand extends InFlight {
  endpointId: string
  quotaNumber: number
  /** Number of slots that the endpoint could use now. */
  max: number
  granted: number
}

/** Sets `granted` of each demand. */
function grantSlots(
  demands: readonly Demand[],
  { inFlight, capacity, free }: { inFlight: readonly InFlight[]; capacity: number; free: number },
): void {
  const slotsFor = (name: keyof typeof fractions) => Math.floor(capacity * fractions[name])
  const usedByOrganization = new Map<string, number>()
  let remaining = free
  let slowCount = 0
  function use({ organizationId, isSlow }: InFlight, count: number): void {
    usedByOrganization.set(organizationId, (usedByOrganization.get(organizationId) ?? 0) + count)
    if (isSlow) slowCount += count
  }
  function fits({ organizationId, isSlow }: Demand, running: number): boolean {
    if (
      remaining <= (running > 0 ? slotsFor('reserved') : 0) ||
      (isSlow && slowCount >= slotsFor('slow'))
    )
      return false
    return (usedByOrganization.get(organizationId) ?? 0) < slotsFor('organization')
  }
  for (const endpoint of inFlight) use(endpoint, endpoint.running)
  for (let level = 0; level < maxPerEndpoint; level++) {
    for (const demand of demands) {
      const isNext = demand.running + demand.granted <= level && demand.granted < demand.max
      if (!isNext || !fits(demand, level)) continue
      use(demand, 1)
      remaining--
      demand.granted++
    }
  }
}
