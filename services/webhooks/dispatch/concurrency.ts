import { LRUCache } from 'lru-cache'

/** Requests in flight to one endpoint, over all processes. */
export const maxPerEndpoint = 10
export const maxRequests = 256
/** The limit of an endpoint that this process knows nothing of: it may be dead. */
const firstLimit = 2
const slowMs = 1000
/** The pause after a request that nobody answered; twice as long each time. */
const pauses = { first: 50, last: 1000 }
const maxRemembered = 10_000
/** Of the capacity: for all slow endpoints, for one organization, and for endpoints with nothing in flight. */
const fractions = { slow: 1 / 2, organization: 1 / 4, reserved: 1 / 4 }

interface EndpointLimit {
  limit: number
  running: number
  /** Its last request took long or was not answered. */
  isSlow: boolean
  organizationId: string
  /** Since when none of the running requests has ended (milliseconds of the clock). */
  quietSince: number
  pauseMs: number
  chosen: number
}

function newLimit(): EndpointLimit {
  return {
    limit: firstLimit,
    running: 0,
    isSlow: false,
    organizationId: '',
    quietSince: 0,
    pauseMs: 0,
    chosen: 0,
  }
}

export interface RequestEnd {
  answered: boolean
  durationMs: number
}

/** One more after each answer, half as many after none: a dead endpoint is soon limited to one request. */
export function nextLimit(
  { limit, pauseMs }: Pick<EndpointLimit, 'limit' | 'pauseMs'>,
  { answered, durationMs }: RequestEnd,
): Pick<EndpointLimit, 'limit' | 'pauseMs' | 'isSlow'> {
  return {
    limit: answered ? Math.min(limit + 1, maxPerEndpoint) : Math.max(1, Math.floor(limit / 2)),
    isSlow: !answered || durationMs > slowMs,
    pauseMs: answered ? 0 : Math.min(Math.max(2 * pauseMs, pauses.first), pauses.last),
  }
}

interface Allocation {
  quotas: Quota[]
  /** Whether something due got no quota, so that it is worth another look when requests end. */
  hasMore: boolean
  pausedMs: number
}

export interface ConcurrencyLimits {
  began(endpointId: string): void
  ended(endpointId: string, end?: RequestEnd): void
  /**
   * Divides `free` requests among the endpoints. Those that got a quota longest ago come first, so none waits for ever.
   * All slow endpoints together have half of the capacity at most, and those of one organization a quarter. A quarter
   * is reserved for endpoints that have nothing in flight.
   */
  allocate(due: readonly DueEndpoint[], free: number): Allocation
}

interface LimitsOptions {
  capacity?: number
  now?: () => number
}

export function createConcurrencyLimits({
  capacity = maxRequests,
  now = () => performance.now(),
}: LimitsOptions = {}): ConcurrencyLimits {
  const limits = new LRUCache<string, EndpointLimit>({ max: maxRemembered })
  let choices = 0

  const limitOf = (endpointId: string) => limits.get(endpointId) ?? newLimit()

  function remembered(endpointId: string): EndpointLimit {
    const endpoint = limitOf(endpointId)
    if (endpoint.chosen === 0) limits.set(endpointId, endpoint)
    return endpoint
  }

  // One whose requests all stall is known only when they time out, and would use its capacity until then.
  const isSlowNow = ({ isSlow, running, quietSince }: EndpointLimit) =>
    isSlow || (running > 0 && now() - quietSince > slowMs)

  const pauseLeft = ({ pauseMs, quietSince }: EndpointLimit) => Math.max(0, quietSince + pauseMs - now())

  function demandOf({ endpointId, organizationId, due }: DueEndpoint): EndpointDemand & { chosen: number } {
    const endpoint = limitOf(endpointId)
    const { running, limit, chosen } = endpoint
    const wanted = pauseLeft(endpoint) > 0 ? 0 : Math.min(limit - running, due)
    return { endpointId, organizationId, running, wanted, isSlow: isSlowNow(endpoint), chosen }
  }

  function usage() {
    const organizations = new Map<string, number>()
    let slow = 0
    for (const endpoint of limits.values()) {
      const { running, organizationId } = endpoint
      if (running === 0) continue
      organizations.set(organizationId, (organizations.get(organizationId) ?? 0) + running)
      if (isSlowNow(endpoint)) slow += running
    }
    return { slow, of: (organizationId: string) => organizations.get(organizationId) ?? 0 }
  }

  function remember(quotas: Quota[], due: readonly DueEndpoint[]): void {
    const organizations = new Map(due.map(({ endpointId, organizationId }) => [endpointId, organizationId]))
    for (const { endpointId } of quotas) {
      const organizationId = organizations.get(endpointId) ?? ''
      Object.assign(remembered(endpointId), { organizationId, chosen: ++choices })
    }
  }

  return {
    began(endpointId) {
      const endpoint = remembered(endpointId)
      if (endpoint.running === 0) endpoint.quietSince = now()
      endpoint.running++
    },
    ended(endpointId, end) {
      const endpoint = remembered(endpointId)
      endpoint.running = Math.max(0, endpoint.running - 1)
      endpoint.quietSince = now()
      if (end) Object.assign(endpoint, nextLimit(endpoint, end))
    },
    allocate(due, free) {
      const { slow, of } = usage()
      const demands = due.map(demandOf).toSorted((a, b) => a.chosen - b.chosen)
      const part = (name: keyof typeof fractions) => Math.floor(capacity * fractions[name])
      const quotas = divideFairly(demands, {
        free,
        reserved: part('reserved'),
        slow: part('slow') - slow,
        ofOrganization: (organizationId) => part('organization') - of(organizationId),
      })
      remember(quotas, due)
      const pausing = due.map(({ endpointId }) => pauseLeft(limitOf(endpointId)) || Infinity)
      const pausedMs = pausing.reduce((least, ms) => Math.min(least, ms), Infinity)
      return { quotas, pausedMs, hasMore: isLeft(due, quotas) }
    },
  }
}

function isLeft(due: readonly DueEndpoint[], quotas: Quota[]): boolean {
  const given = new Map(quotas.map(({ endpointId, max }) => [endpointId, max]))
  return due.some((one) => one.due > (given.get(one.endpointId) ?? 0))
}

export interface DueEndpoint {
  endpointId: string
  organizationId: string
  /** Deliveries that are due and not in flight; where there are many, counted up to 10. */
  due: number
}

interface EndpointDemand {
  endpointId: string
  organizationId: string
  running: number
  wanted: number
  isSlow: boolean
}

/** How many requests are left: in all, of those for endpoints with none in flight, for slow endpoints, for one organization. */
interface Capacity {
  free: number
  reserved: number
  slow: number
  ofOrganization(organizationId: string): number
}

export interface Quota {
  endpointId: string
  max: number
}

/**
 * Gives the next request to the endpoint with the fewest in flight, and of those to the one that stands first. So no
 * endpoint gets a second request before each has its first, as far as the capacity allows.
 */
function divideFairly(demands: readonly EndpointDemand[], capacity: Capacity): Quota[] {
  const left = createLeft(capacity)
  const quotas = demands.map((demand) => ({ demand, max: 0 }))
  const levels = demands.reduce((most, { running, wanted }) => Math.max(most, running + wanted), 0)
  for (let level = 0; level < levels; level++) {
    for (const one of quotas) {
      const { demand, max } = one
      if (demand.running + max <= level && max < demand.wanted && left.use(demand, level)) one.max++
    }
  }
  return quotas.flatMap(({ demand: { endpointId }, max }) => (max > 0 ? [{ endpointId, max }] : []))
}

function createLeft({ free, reserved, slow, ofOrganization }: Capacity) {
  const left = { free, slow }
  const organizations = new Map<string, number>()
  return {
    use({ isSlow, organizationId }: EndpointDemand, running: number): boolean {
      const own = organizations.get(organizationId) ?? ofOrganization(organizationId)
      if (left.free <= (running > 0 ? reserved : 0) || own <= 0 || (isSlow && left.slow <= 0)) return false
      left.free--
      if (isSlow) left.slow--
      organizations.set(organizationId, own - 1)
      return true
    },
  }
}
