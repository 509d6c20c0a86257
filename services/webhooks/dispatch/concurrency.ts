import { createLru } from '../../../infra/lru.ts'
import { type DueEndpoint, maxPerEndpoint, type Quota } from '../leases.ts'

export const maxRequests = 256
// The limit of an endpoint that this process knows nothing of: it may be dead.
const firstLimit = 2
const slowMs = 1000
// The pause after a request that nobody answered; twice as long each time.
const pauses = { first: 50, last: 1000 }
const maxRemembered = 10_000
// Parts of the capacity: for all slow endpoints, for one organization, and for endpoints with nothing in flight.
const fractions = { slow: 1 / 2, organization: 1 / 4, reserved: 1 / 4 }

interface Endpoint {
  organizationId: string
  limit: number
  running: number
  /** Its last request took long or was not answered. */
  isSlow: boolean
  /** Since when none of the running requests has ended (milliseconds of the clock). */
  stalledSince: number
  pauseMs: number
  /** Higher for each quota that is granted, so that the lowest is the longest ago. */
  quotaNumber: number
}

const unknown: Endpoint = {
  organizationId: '',
  limit: firstLimit,
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

/** One more after each answer, half as many after none: a dead endpoint is soon limited to one request. */
export function nextLimit(
  { limit, pauseMs }: Pick<Endpoint, 'limit' | 'pauseMs'>,
  { answered, durationMs }: RequestEnd,
): Pick<Endpoint, 'limit' | 'pauseMs' | 'isSlow'> {
  return {
    limit: answered ? Math.min(limit + 1, maxPerEndpoint) : Math.max(1, Math.floor(limit / 2)),
    isSlow: !answered || durationMs > slowMs,
    pauseMs: answered ? 0 : Math.min(Math.max(2 * pauseMs, pauses.first), pauses.last),
  }
}

export interface ConcurrencyLimits {
  began(endpointId: string): void
  ended(endpointId: string, end?: RequestEnd): void
  /**
   * Divides `free` requests among the endpoints. The next one goes to the endpoint with the fewest in flight, and of
   * those to the one whose last quota is longest ago. So no endpoint gets a second request before each has its first,
   * and none waits for ever. `hasMore`: something due got no quota, so it is worth trying again when requests end.
   */
  allocate(due: readonly DueEndpoint[], free: number): { quotas: Quota[]; hasMore: boolean }
}

export function createConcurrencyLimits({
  capacity = maxRequests,
  now = () => performance.now(),
} = {}): ConcurrencyLimits {
  const endpoints = createLru<string, Endpoint>(maxRemembered)
  let quotasGranted = 0

  const endpointOf = (id: string) => endpoints.get(id) ?? unknown
  const change = (id: string, changes: Partial<Endpoint>) =>
    endpoints.set(id, { ...endpointOf(id), ...changes })

  // One whose requests all stall is known only when they time out, and would use its capacity until then.
  const isSlowNow = ({ isSlow, running, stalledSince }: Endpoint) =>
    isSlow || (running > 0 && now() - stalledSince > slowMs)

  function demandOf({ endpointId, organizationId, due }: DueEndpoint): Demand {
    const endpoint = endpointOf(endpointId)
    const { limit, running, stalledSince, pauseMs, quotaNumber } = endpoint
    const most = now() < stalledSince + pauseMs ? 0 : Math.min(limit - running, due)
    return {
      endpointId,
      organizationId,
      running,
      quotaNumber,
      isSlow: isSlowNow(endpoint),
      most,
      max: 0,
    }
  }

  return {
    began(id) {
      const { running, stalledSince } = endpointOf(id)
      change(id, { running: running + 1, stalledSince: running === 0 ? now() : stalledSince })
    },
    ended(id, end) {
      const endpoint = endpointOf(id)
      const running = Math.max(0, endpoint.running - 1)
      change(id, { running, stalledSince: now(), ...(end && nextLimit(endpoint, end)) })
    },
    allocate(due, free) {
      const inFlight = [...endpoints.values()].map((one) => ({ ...one, isSlow: isSlowNow(one) }))
      const demands = due.map(demandOf).toSorted((a, b) => a.quotaNumber - b.quotaNumber)
      divide(demands, { inFlight, capacity, free })
      const granted = demands.filter(({ max }) => max > 0)
      for (const { endpointId, organizationId } of granted)
        change(endpointId, { organizationId, quotaNumber: ++quotasGranted })
      const requested = due.reduce((sum, one) => sum + one.due, 0)
      const grantedCount = granted.reduce((sum, { max }) => sum + max, 0)
      return {
        quotas: granted.map(({ endpointId, max }) => ({ endpointId, max })),
        hasMore: grantedCount < requested,
      }
    },
  }
}

type InFlight = Pick<Endpoint, 'organizationId' | 'running' | 'isSlow'>

interface Demand extends InFlight {
  endpointId: string
  quotaNumber: number
  most: number
  /** How many requests it gets. */
  max: number
}

function divide(
  demands: readonly Demand[],
  { inFlight, capacity, free }: { inFlight: readonly InFlight[]; capacity: number; free: number },
): void {
  const part = (name: keyof typeof fractions) => Math.floor(capacity * fractions[name])
  const used = new Map<string, number>()
  let left = free
  let slow = 0
  function use({ organizationId, isSlow }: InFlight, count: number): void {
    used.set(organizationId, (used.get(organizationId) ?? 0) + count)
    if (isSlow) slow += count
  }
  function fits({ organizationId, isSlow }: Demand, running: number): boolean {
    if (left <= (running > 0 ? part('reserved') : 0) || (isSlow && slow >= part('slow')))
      return false
    return (used.get(organizationId) ?? 0) < part('organization')
  }
  for (const one of inFlight) use(one, one.running)
  for (let level = 0; level < maxPerEndpoint; level++) {
    for (const demand of demands) {
      const isNext = demand.running + demand.max <= level && demand.max < demand.most
      if (!isNext || !fits(demand, level)) continue
      use(demand, 1)
      left--
      demand.max++
    }
  }
}
