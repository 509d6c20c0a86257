import { createLru } from '../../../infra/lru.ts'
import { type DueEndpoint, maxPerEndpoint, type Quota } from '../leases.ts'

/*
 * Adaptive concurrency limits per endpoint (additive increase, multiplicative decrease) and a fair allocation of
 * request slots to endpoints. Both count the requests of this process only.
 */

export const maxRequests = 256
// For an endpoint without a request so far, which may be down.
const initialLimit = 2
const slowMs = 1000
// Pause after a request without a response; doubles each time.
const pauseRangeMs = { min: 50, max: 1000 }
const maxEndpoints = 10_000
// Shares of the capacity: for all slow endpoints, for one organization, and for endpoints with nothing in flight.
const fractions = { slow: 1 / 2, organization: 1 / 4, reserved: 1 / 4 }

interface Endpoint {
  organizationId: string
  limit: number
  running: number
  /** Its last request took longer than `slowMs` or got no response. */
  isSlow: boolean
  /** Time of the last end of a request, or of the first running request; milliseconds of the clock. */
  stalledSince: number
  pauseMs: number
  /** Sequence number of the endpoint's last quota; the lowest is the longest ago. */
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
  answered: boolean
  durationMs: number
}

/** Returns a limit that is one higher after a response, and half as high without one. */
export function nextLimit(
  { limit, pauseMs }: Pick<Endpoint, 'limit' | 'pauseMs'>,
  { answered, durationMs }: RequestEnd,
): Pick<Endpoint, 'limit' | 'pauseMs' | 'isSlow'> {
  return {
    limit: answered ? Math.min(limit + 1, maxPerEndpoint) : Math.max(1, Math.floor(limit / 2)),
    isSlow: !answered || durationMs > slowMs,
    pauseMs: answered ? 0 : Math.min(Math.max(2 * pauseMs, pauseRangeMs.min), pauseRangeMs.max),
  }
}

export interface ConcurrencyLimits {
  onBegin(endpointId: string): void
  onEnd(endpointId: string, end?: RequestEnd): void
  /**
   * Divides `free` requests among the endpoints. Each goes to the endpoint with the fewest in flight, and among equals
   * to the one whose last quota is longest ago. So no endpoint gets a second request before each has its first, and
   * none starves. `hasMore` is true if a due delivery got no quota: allocate again when requests end.
   */
  allocate(due: readonly DueEndpoint[], free: number): { quotas: Quota[]; hasMore: boolean }
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

  // An endpoint also counts as slow while its requests stall, long before they time out.
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
    allocate(due, free) {
      const inFlight = [...endpoints.values()].map((endpoint) => ({
        ...endpoint,
        isSlow: isSlowNow(endpoint),
      }))
      const demands = due.map(demandOf).toSorted((a, b) => a.quotaNumber - b.quotaNumber)
      divide(demands, { inFlight, capacity, free })
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
  /** Requests that it could use now. */
  max: number
  /** Requests that it gets. */
  granted: number
}

/** Sets `granted` of each demand. */
function divide(
  demands: readonly Demand[],
  { inFlight, capacity, free }: { inFlight: readonly InFlight[]; capacity: number; free: number },
): void {
  const share = (name: keyof typeof fractions) => Math.floor(capacity * fractions[name])
  const usedByOrganization = new Map<string, number>()
  let freeSlots = free
  let slowCount = 0
  function use({ organizationId, isSlow }: InFlight, count: number): void {
    usedByOrganization.set(organizationId, (usedByOrganization.get(organizationId) ?? 0) + count)
    if (isSlow) slowCount += count
  }
  function fits({ organizationId, isSlow }: Demand, running: number): boolean {
    if (
      freeSlots <= (running > 0 ? share('reserved') : 0) ||
      (isSlow && slowCount >= share('slow'))
    )
      return false
    return (usedByOrganization.get(organizationId) ?? 0) < share('organization')
  }
  for (const endpoint of inFlight) use(endpoint, endpoint.running)
  for (let level = 0; level < maxPerEndpoint; level++) {
    for (const demand of demands) {
      const isNext = demand.running + demand.granted <= level && demand.granted < demand.max
      if (!isNext || !fits(demand, level)) continue
      use(demand, 1)
      freeSlots--
      demand.granted++
    }
  }
}
