import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { type Config, readConfig } from '../../../infra/config.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { readMasterKeys } from '../../../infra/crypto/master-keys.ts'
import { refuseOtherMasterKeys } from '../../../infra/event-store/data-key-table.ts'
import { createDataKeys, type DataKeys } from '../../../infra/event-store/data-keys.ts'
import { createPool, readOnlySettings } from '../../../infra/postgres/pool.ts'
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
    allowsLongQueries: true,
  })
}

export type Stores = Pick<Core, 'config' | 'pool' | 'log' | 'codec' | 'logger'> & {
  /** Undefined without the master keys. */
  dataKeys: DataKeys | undefined
}

interface StoreOptions {
  /** Decrypts personal data, and throws without the master keys. `ifSet`: leaves data encrypted without them. */
  decrypts?: boolean | 'ifSet'
  /** Makes Postgres reject every write. */
  isReadOnly?: boolean
  /** Doesn't write to the log or create its tables. */
  isLogReadOnly?: boolean
  /** Suppresses the log's warnings, for callers that report outages themselves. */
  logsErrorsOnly?: boolean
}

/**
 * Runs `work` with the database and the log in the settings, and closes them. Creates no tables or topics, and needs the
 * master keys only to decrypt.
 */
export async function withStores<T>(
  work: (stores: Stores) => Promise<T>,
  {
    decrypts = false,
    isReadOnly = false,
    isLogReadOnly = isReadOnly,
    logsErrorsOnly = false,
  }: StoreOptions = {},
): Promise<T> {
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  const url = await databaseUrlOf(config)
  const logger = createLogger(config.LOG_LEVEL, process.stderr)
  await using stack = new AsyncDisposableStack()
  const settings = isReadOnly ? readOnlySettings : {}
  const pool = createPool({ url, applicationName: 'tidegate command', settings })
  stack.defer(() => pool.end())
  await refusePooler(pool)
  const logLogger = logsErrorsOnly ? logger.child({}, { level: 'error' }) : logger
  const log = await openLog({ config, pool, url, logger: logLogger, isReadOnly: isLogReadOnly })
  stack.defer(() => log.close())
  const random = createRandom()
  const masterKeys = await masterKeysToDecrypt(config, decrypts)
  const keyring = masterKeys === undefined ? undefined : createKeyring(masterKeys)
  if (keyring) await refuseOtherMasterKeys(pool, keyring)
  const dataKeys = keyring && createDataKeys({ pool, random, clock: Date.now, keyring })
  const codec = await openCodec(config, { logger, sealing: dataKeys && { random, keys: dataKeys } })
  return await work({ config, pool, log, codec, dataKeys, logger })
}

async function masterKeysToDecrypt(config: Config, decrypts: StoreOptions['decrypts']) {
  if (!decrypts) return undefined
  return decrypts === 'ifSet' ? masterKeysOf(config, () => undefined) : masterKeysOf(config)
}

/** Returns the master keys, or the result of `fallback` if none are set. Throws if they are set but cannot be read. */
async function masterKeysOf<T = never>(config: Config, fallback?: () => T): Promise<string | T> {
  const masterKeys = await readMasterKeys(config)
  return masterKeys ?? developmentFile(config, 'master-keys').catch(fallback)
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
