import type pg from 'pg'
import type { Applied } from '../../infra/event-store/applied.ts'
import { followProjection } from '../../infra/event-store/follow.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { allowingMinimalMode } from '../../projections/policies/queries.ts'
import type { AllowsMinimal } from './session/facts.ts'

interface MinimalModeOptions {
  pool: pg.Pool
  applied: Pick<Applied, 'onChange'>
  logger: Logger
}

export interface MinimalMode {
  allowsMinimal: AllowsMinimal
  stop(): Promise<void>
}

/** Follows which organizations allow it. Resolves when that is known, so that no start judges their sessions wrongly. */
export async function followMinimalMode({
  pool,
  ...deps
}: MinimalModeOptions): Promise<MinimalMode> {
  let allowing = new Set<string>()
  const { stop } = await followProjection(deps, {
    projection: 'policies',
    what: 'data policies',
    async read() {
      allowing = new Set(await allowingMinimalMode(pool))
    },
  })
  return { allowsMinimal: (organizationId) => allowing.has(organizationId), stop }
}
