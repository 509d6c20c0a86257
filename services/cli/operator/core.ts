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
 * Opens the database and log in the settings; without DATABASE_URL the database of a running `tidegate dev` in
 * DATA_DIR. Logs go to standard error, so that output can be piped.
 */
export async function openOperatorCore(options: Pick<CoreOptions, 'holdsLog'> = {}): Promise<Core> {
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
  /** Without the master keys there are none. */
  dataKeys: DataKeys | undefined
}

interface StoreOptions {
  /** `ifThere` = where there are no master keys, what is encrypted stays closed. */
  opensKeys?: boolean | 'ifThere'
  /** Postgres refuses every write. */
  isReadOnly?: boolean
  /** Nothing is written to the log, and no table is made for it. */
  isLogReadOnly?: boolean
  /** Only errors of the log are printed: the caller says that it does not answer. */
  logsErrorsOnly?: boolean
}

/**
 * Opens the log and the database of the settings as they are: makes nothing, and needs no master keys but to open what is
 * encrypted.
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
  const ofLog = logsErrorsOnly ? logger.child({}, { level: 'error' }) : logger
  const log = await openLog({ config, pool, url, logger: ofLog, isReadOnly: isLogReadOnly })
  stack.defer(() => log.close())
  const random = createRandom()
  const opened = await masterKeysFor(config, opensKeys)
  const keyring = opened === undefined ? undefined : createKeyring(opened)
  if (keyring) await refuseOtherMasterKeys(pool, keyring)
  const dataKeys = keyring && createDataKeys({ pool, random, clock: Date.now, keyring })
  const codec = await openCodec(config, { logger, sealing: dataKeys && { random, keys: dataKeys } })
  return await work({ config, pool, log, codec, dataKeys, logger })
}

async function masterKeysFor(config: Config, opensKeys: StoreOptions['opensKeys']) {
  if (!opensKeys) return undefined
  return opensKeys === 'ifThere' ? masterKeysOf(config, () => undefined) : masterKeysOf(config)
}

/** `otherwise` is for where none are set and no development files are there; those that are set and fail are an error. */
async function masterKeysOf<T = never>(config: Config, otherwise?: () => T): Promise<string | T> {
  const set = await readMasterKeys(config)
  return set ?? developmentFile(config, 'master-keys').catch(otherwise)
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
        'DATA_DIR to where a running one keeps its files.',
    )
  })
  return text.trim()
}
