import { randomBytes } from 'node:crypto'
import { readConfig } from '../infra/config.ts'
import { createLogger } from '../infra/telemetry.ts'
import { type Core, openCore } from '../services/server/dependencies.ts'
import type { Environment } from './environment.ts'

/** Opens the bench's own connections to the database and the log. */
export function openOwnCore({ databaseUrl, settings }: Environment): Promise<Core> {
  const masterKeys = settings.TIDEGATE_MASTER_KEYS
  const parts = { logger: createLogger('warn'), clock: Date.now, random: randomBytes }
  return openCore({
    config: readConfig(settings),
    databaseUrl,
    masterKeys,
    allowsLongQueries: true,
    ...parts,
  })
}
