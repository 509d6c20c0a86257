import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { type Config, readConfig } from '../../../infra/config.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { readMasterKeys } from '../../../infra/crypto/master-keys.ts'
import { refuseOtherMasterKeys } from '../../../infra/event-store/data-key-table.ts'
import { createDataKeys, type DataKeys } from '../../../infra/event-store/data-keys.ts'
import { createPool, readOnly } from '../../../infra/postgres/pool.ts'
import { refusePooler } from '../../../infra/postgres/pooler.ts'
import { createRandom } from '../../../infra/random.ts'
import { createLogger } from '../../../infra/telemetry.ts'
import {
  type Core,
  type CoreOptions,
  openCodec,
  openCore,
  openLog,
} from '../../server/dependencies.ts'

/**
 * Opens the database and the log in the settings. Without DATABASE_URL, uses the database of the `tidegate dev` that runs
 * in DATA_DIR. Logs go to standard error, so that output can be piped.
 */
export async function openOperatorCore(options: Pick<CoreOptions, 'logClaim'> = {}): Promise<Core> {
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  return openCore({
    ...options,
    config,
    databaseUrl: await databaseUrlOf(config),
    masterKeys: await masterKeysOf(config),
    logger: createLogger(config.LOG_LEVEL, process.stderr),
    clock: Date.now,
    random: createRandom(),
    longQueries: true,
  })
}

export type Stores = Pick<Core, 'config' | 'pool' | 'log' | 'codec' | 'logger'> & {
  /** Undefined without the master keys. */
  dataKeys: DataKeys | undefined
}

interface StoreOptions {
  /** Requires the master keys, to decrypt personal data. `ifSet`: without them, data stays encrypted. */
  opensKeys?: boolean | 'ifSet'
  /** Makes Postgres reject every write. */
  isReadOnly?: boolean
  /** Writes nothing to the log, and doesn't create its tables. */
  isLogReadOnly?: boolean
  /** Prints no warnings of the log, because the caller reports outages. */
  logsErrorsOnly?: boolean
}

/**
 * Runs `work` with the database and the log in the settings, and closes them. Creates nothing in them, and needs the
 * master keys only to decrypt.
 */
export async function withStores<T>(
  work: (stores: Stores) => Promise<T>,
  {
    opensKeys = false,
    isReadOnly = false,
    isLogReadOnly = isReadOnly,
    logsErrorsOnly = false,
  }: StoreOptions = {},
): Promise<T> {
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  const url = await databaseUrlOf(config)
  const logger = createLogger(config.LOG_LEVEL, process.stderr)
  await using stack = new AsyncDisposableStack()
  const settings = isReadOnly ? readOnly : {}
  const pool = createPool({ url, applicationName: 'tidegate command', settings })
  stack.defer(() => pool.end())
  await refusePooler(pool)
  const logLogger = logsErrorsOnly ? logger.child({}, { level: 'error' }) : logger
  const log = await openLog({ config, pool, url, logger: logLogger, isReadOnly: isLogReadOnly })
  stack.defer(() => log.close())
  const random = createRandom()
  const masterKeys = await masterKeysFor(config, opensKeys)
  const keyring = masterKeys === undefined ? undefined : createKeyring(masterKeys)
  if (keyring) await refuseOtherMasterKeys(pool, keyring)
  const dataKeys = keyring && createDataKeys({ pool, random, clock: Date.now, keyring })
  const codec = await openCodec(config, { logger, sealing: dataKeys && { random, keys: dataKeys } })
  return await work({ config, pool, log, codec, dataKeys, logger })
}

async function masterKeysFor(config: Config, opensKeys: StoreOptions['opensKeys']) {
  if (!opensKeys) return undefined
  return opensKeys === 'ifSet' ? masterKeysOf(config, () => undefined) : masterKeysOf(config)
}

/** Returns the master keys, or the result of `otherwise` if none are set. Throws if they are set but cannot be read. */
async function masterKeysOf<T = never>(config: Config, otherwise?: () => T): Promise<string | T> {
  const masterKeys = await readMasterKeys(config)
  return masterKeys ?? developmentFile(config, 'master-keys').catch(otherwise)
}

const databaseUrlOf = async (config: Config): Promise<string> =>
  config.DATABASE_URL ?? developmentFile(config, 'database-url')

async function developmentFile(
  config: Config,
  name: 'database-url' | 'master-keys',
): Promise<string> {
  const dataDir = path.resolve(config.DATA_DIR)
  const text = await readFile(path.join(dataDir, name), 'utf8').catch(() => {
    const setting = name === 'database-url' ? 'DATABASE_URL' : 'TIDEGATE_MASTER_KEYS'
    throw new Error(
      `${setting} is not set, and DATA_DIR (${dataDir}) has no file ${name}: start tidegate dev first, or set ` +
        'DATA_DIR to the data directory of a running one.',
    )
  })
  return text.trim()
}
