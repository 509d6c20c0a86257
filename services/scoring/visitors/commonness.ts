import { createLru } from '../../../infra/lru.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { DataScope } from '../../../projections/sessions/scope.ts'
import { type ComponentName, component, components, type Profile } from './profile.ts'

/** How common each component is among the visitors that were seen last. */
export interface Commonness {
  /** How many were counted. */
  visitors: number
  /** How many of them have the profile's component. null = the profile has none. */
  withSame(name: ComponentName, profile: Profile): number | null
}

const mostCounted = 1000
const cachedMs = 60_000
const mostScopes = 50

/** Counts once a minute for each scope that is asked for. */
export function createCommonness(db: Db): (scope: DataScope) => Promise<Commonness> {
  const counted = createLru<string, Promise<Commonness>>(mostScopes, { ttl: cachedMs })
  return (scope) => {
    const name = `${scope.organizationId} ${scope.environment}`
    const known = counted.get(name)
    if (known) return known
    const counting = readProfiles(db, scope).then(commonnessOf)
    counted.set(name, counting)
    counting.catch(() => counted.delete(name))
    return counting
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
        order by last_seen_at desc, visitor_id desc limit ${mostCounted}
      ) newest join scoring.visitors v using (visitor_id) where v.profile <> 'null'`,
    values: [organizationId, environment],
  })
  return rows.map(({ profile }) => JSON.parse(profile))
}

export function commonnessOf(profiles: Profile[]): Commonness {
  const counts = new Map(components.map((name) => [name, countsOf(name, profiles)]))
  return {
    visitors: profiles.length,
    withSame(name, profile) {
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
