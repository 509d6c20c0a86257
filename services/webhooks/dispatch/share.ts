/** What an endpoint with due deliveries could use. */
export interface Claim {
  endpointId: string
  organizationId: string
  /** Requests that this process makes to it now. */
  running: number
  /** How many more could begin: no more than are due, nor than its window admits. */
  wanted: number
  isSlow: boolean
}

/** Slots that are left. */
export interface Slots {
  free: number
  /** Of the free ones, those for endpoints that have nothing running. */
  kept: number
  /** For all slow endpoints together. */
  slow: number
  /** For all endpoints of the organization together. */
  ofOrganization(organizationId: string): number
}

export interface Room {
  endpointId: string
  /** How many requests may be begun. */
  room: number
}

/**
 * Divides the slots: whoever has fewest requests running gets the next one, and of those the one that stands first.
 * So no endpoint gets a second slot before each has its first, as far as what it belongs to has slots left. Pure.
 */
export function shareOut(claims: readonly Claim[], slots: Slots): Room[] {
  const left = createLeft(slots)
  const rooms = claims.map((claim) => ({ claim, room: 0 }))
  const levels = claims.reduce((most, { running, wanted }) => Math.max(most, running + wanted), 0)
  for (let level = 0; level < levels; level++) {
    for (const one of rooms) {
      const { claim, room } = one
      if (claim.running + room <= level && room < claim.wanted && left.take(claim, level)) one.room++
    }
  }
  return rooms.flatMap(({ claim: { endpointId }, room }) => (room > 0 ? [{ endpointId, room }] : []))
}

function createLeft({ free, kept, slow, ofOrganization }: Slots) {
  const left = { free, slow }
  const organizations = new Map<string, number>()
  return {
    /** False when there is none for an endpoint with so many requests running. */
    take({ isSlow, organizationId }: Claim, running: number): boolean {
      const own = organizations.get(organizationId) ?? ofOrganization(organizationId)
      if (left.free <= (running > 0 ? kept : 0) || own <= 0 || (isSlow && left.slow <= 0)) return false
      left.free--
      if (isSlow) left.slow--
      organizations.set(organizationId, own - 1)
      return true
    },
  }
}
