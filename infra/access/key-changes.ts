const maxOrganizations = 10_000

/**
 * Counts changes of organizations and their keys, and which was the last that concerns one organization. Told apart,
 * so that an organization that changes its keys all the time costs the others nothing.
 */
export function createChanges() {
  const lastOf = new Map<string, number>()
  let count = 0
  let lastOfAll = 0

  return {
    /** How many there have been. */
    count: () => count,
    /** The number of the last change that may concern the organization; without one, that may concern anything. */
    lastOf: (organizationId?: string) =>
      Math.max(lastOfAll, (organizationId && lastOf.get(organizationId)) || 0),
    /** Something about these organizations has changed; undefined = about any. */
    note(organizationIds: readonly string[] | undefined): void {
      count++
      if (organizationIds && lastOf.size + organizationIds.length <= maxOrganizations) {
        for (const id of organizationIds) lastOf.set(id, count)
        return
      }
      lastOf.clear()
      lastOfAll = count
    },
  }
}
