import { createLru } from '../../../infra/lru.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { DataScope } from '../../../projections/sessions/scope.ts'
import { type ComponentName, component, components, type Profile } from './profile.ts'

/** Counts of each component's values among the visitors seen last. */
export interface ComponentCounts {
  /** Number of visitors counted. */
  visitors: number
  /** Returns the number of counted visitors with the same component; null if the profile lacks it. */
  countSame(name: ComponentName, profile: Profile): number | null
}

const maxVisitors = 1000
const cacheMs = 60_000
const maxScopes = 50

/** Returns a function that counts the components of a scope, at most once a minute. */
export function createComponentCounter(db: Db): (scope: DataScope) => Promise<ComponentCounts> {
  const cache = createLru<string, Promise<ComponentCounts>>(maxScopes, { ttl: cacheMs })
  return (scope) => {
    const name = `${scope.organizationId} ${scope.environment}`
    const cached = cache.get(name)
    if (cached) return cached
    const counts = readProfiles(db, scope).then(countComponents)
    cache.set(name, counts)
    counts.catch(() => cache.delete(name))
    return counts
  }
}

async function readProfiles(
  db: Db,
  { organizationId, environment }: DataScope,
): Promise<Profile[]> {
  const { rows } = await db.query<{ profile: string }>({
    name: 'newest-profiles',
    text: `select v.profile from (
        select visitor_id from read.visitors where organization_id = $1 and environment = $2
        order by last_seen_at desc, visitor_id desc limit ${maxVisitors}
      ) newest join scoring.visitors v using (visitor_id) where v.profile <> 'null'`,
    values: [organizationId, environment],
  })
  return rows.map(({ profile }) => JSON.parse(profile))
}

export function countComponents(profiles: Profile[]): ComponentCounts {
  const counts = new Map(components.map((name) => [name, countsOf(name, profiles)]))
  return {
    visitors: profiles.length,
    countSame(name, profile) {
      const value = component(profile, name)
      return value === null ? null : (counts.get(name)?.get(value) ?? 0)
    },
  }
}

function countsOf(name: ComponentName, profiles: Profile[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const profile of profiles) {
    const value = component(profile, name)
    if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1)
  }
  return counts
}
