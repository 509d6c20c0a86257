import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { readConfig } from '../../infra/config.ts'
import { createRandom } from '../../infra/random.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { type Core, openCore } from '../server/dependencies.ts'

/**
 * Runs one command against the database and log in the settings; without DATABASE_URL against the database of a
 * running `tidegate dev` in DATA_DIR. Logs go to standard error, so that output can be piped.
 */
export async function withCore<T>(work: (core: Core) => Promise<T>): Promise<T> {
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  const dataDir = path.resolve(config.DATA_DIR)
  const core = await openCore({
    config,
    databaseUrl: config.DATABASE_URL ?? (await developmentFile(dataDir, 'database-url')),
    masterKeys: config.TIDEGATE_MASTER_KEYS ?? (await developmentFile(dataDir, 'master-keys')),
    logger: createLogger(config.LOG_LEVEL, process.stderr),
    clock: Date.now,
    random: createRandom(),
    longQueries: true,
  })
  try {
    return await work(core)
  } finally {
    await core.close()
  }
}

async function developmentFile(dataDir: string, name: string): Promise<string> {
  const file = path.join(dataDir, name)
  const text = await readFile(file, 'utf8').catch(() => {
    throw new Error(`DATABASE_URL is not set and ${file} does not exist: is tidegate dev running?`)
  })
  return text.trim()
}
