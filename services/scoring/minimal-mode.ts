import type pg from 'pg'
import type { Applied } from '../../infra/event-store/applied.ts'
import { runPeriodically } from '../../infra/flow/periodic.ts'
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

const everyMs = 15_000

/** Follows which organizations allow it. Resolves when that is known, so that no start judges their sessions wrongly. */
export async function followMinimalMode({ pool, applied, logger }: MinimalModeOptions): Promise<MinimalMode> {
  const read = async () => new Set(await allowingMinimalMode(pool))
  let allowing = await read()
  const following = runPeriodically({
    intervalMs: everyMs,
    async work() {
      allowing = await read()
      return false
    },
    onError: (err) => logger.warn({ err }, 'data policies were not read; the next poll tries again'),
  })
  const stopListening = applied.onChange('policies', following.wake)
  return {
    allowsMinimal: (organizationId) => allowing.has(organizationId),
    async stop() {
      stopListening()
      await following.stop()
    },
  }
}
