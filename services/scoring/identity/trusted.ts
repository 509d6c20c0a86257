import type pg from 'pg'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { followProjection } from '../../../infra/event-store/follow.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { trustedDirectories } from '../../../projections/policies/queries.ts'
import type { TrustedDirectory } from '../session/identity.ts'

/** Null where the organization does not trust the directory of the domain. */
export type FindTrusted = (organizationId: string, domain: string) => TrustedDirectory | null

interface FollowOptions {
  pool: pg.Pool
  applied: Pick<Applied, 'onChange'>
  logger: Logger
}

/** Follows which directories organizations trust. Resolves when that is known, so that no start judges their agents wrongly. */
export async function followTrusted({ pool, ...deps }: FollowOptions): Promise<{
  findTrusted: FindTrusted
  /** Domains that any organization trusts. */
  domains(): string[]
  stop(): Promise<void>
}> {
  let trusted = new Map<string, TrustedDirectory>()
  let domains: string[] = []
  const { stop } = await followProjection(deps, {
    projection: 'policies',
    what: 'directories of agents that organizations trust',
    async read() {
      const rows = await trustedDirectories(pool)
      domains = [...new Set(rows.map(({ domain }) => domain))]
      trusted = new Map(
        rows.map(({ organization_id, domain, name }) => [`${organization_id} ${domain}`, { name }]),
      )
    },
  })
  return {
    findTrusted: (organizationId, domain) => trusted.get(`${organizationId} ${domain}`) ?? null,
    domains: () => domains,
    stop,
  }
}
