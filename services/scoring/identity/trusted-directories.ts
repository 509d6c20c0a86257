import type pg from 'pg'
import type { AppliedOffsets } from '../../../infra/event-store/applied.ts'
import { followProjection } from '../../../infra/event-store/follow.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { trustedDirectories } from '../../../projections/policies/queries.ts'
import type { TrustedDirectory } from '../session/identity.ts'

/** Returns null if the organization does not trust the domain's directory. */
export type FindTrusted = (organizationId: string, domain: string) => TrustedDirectory | null

interface FollowOptions {
  pool: pg.Pool
  applied: Pick<AppliedOffsets, 'onChange'>
  logger: Logger
}

/** Keeps the trusted directories in memory. Resolves after the first read, so no agent is misjudged. */
export async function followTrustedDirectories({ pool, ...deps }: FollowOptions): Promise<{
  findTrusted: FindTrusted
  /** Returns the domains that at least one organization trusts. */
  domains(): string[]
  stop(): Promise<void>
}> {
  let trusted = new Map<string, TrustedDirectory>()
  let domains: string[] = []
  const { stop } = await followProjection(deps, {
    projection: 'policies',
    label: 'trusted agent directories',
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
