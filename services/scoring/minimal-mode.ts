import type pg from 'pg'
import type { AppliedOffsets } from '../../infra/event-store/applied.ts'
import { followProjection } from '../../infra/event-store/follow.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { findMinimalModeOrganizations } from '../../projections/policies/queries.ts'
import type { AllowsMinimalMode } from './session/facts.ts'

interface MinimalModeOptions {
  pool: pg.Pool
  applied: Pick<AppliedOffsets, 'onChange'>
  logger: Logger
}

export interface MinimalMode {
  allowsMinimalMode: AllowsMinimalMode
  stop(): Promise<void>
}

/** Tracks the organizations that allow minimal mode. Resolves after the first read, so no session is misjudged. */
export async function followMinimalMode({
  pool,
  ...deps
}: MinimalModeOptions): Promise<MinimalMode> {
  let organizationIds = new Set<string>()
  const { stop } = await followProjection(deps, {
    projection: 'policies',
    label: 'data policies',
    async read() {
      organizationIds = new Set(await findMinimalModeOrganizations(pool))
    },
  })
  return { allowsMinimalMode: (organizationId) => organizationIds.has(organizationId), stop }
}
