import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { chmod, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type pg from 'pg'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../infra/local/embedded-postgres.ts'
import { createPool } from '../infra/postgres/pool.ts'
import { createLogger } from '../infra/telemetry.ts'
import type { DevelopmentCredentials } from '../services/cli/credentials.ts'
import type { Role } from '../services/server/roles.ts'
import { type Child, startChild } from './child.ts'

type Settings = Record<'DATABASE_URL' | 'DATA_DIR' | 'PORT' | 'LOG_LEVEL', string> &
  Record<'RATE_LIMIT_SECRET' | 'RATE_LIMIT_PUBLISHABLE' | 'RATE_LIMIT_CONSOLE', string> &
  Record<
    'TIDEGATE_MASTER_KEYS' | 'KAFKA_BROKERS' | 'KAFKA_TOPIC_PREFIX' | 'WEBHOOK_ALLOWED_NETWORKS',
    string
  >

export type LogName = 'embedded' | 'kafka'

/** Database, and functions that start the programs to measure on it. */
export interface Environment {
  logName: LogName
  databaseUrl: string
  /** Settings shared by all programs of this environment. */
  settings: Settings
  /** Processes whose CPU time counts as the stores': Postgres, and Kafka if the bench started it. */
  storePids: number[]
  postgresPid: number
  /** Undefined if the bench did not start Kafka, or the log is embedded. */
  kafkaPid: number | undefined
  /** Returns the size of the log on disk. */
  logBytes(pool: pg.Pool): Promise<number>
  /** Starts all roles in one process, like `make run`. Sheds load because of its backlog only with `sheds`. */
  startAllInOne(options?: { sheds: boolean; env?: Record<string, string> }): Promise<Child>
  /** Starts some roles in a separate process, as in production. */
  startRoles(...roles: Role[]): Promise<Child>
  /** Starts the role collect without claims of sequence numbers. */
  startUnclaimed(): Promise<Child>
  startFloor(): Promise<Child>
  /** Starts the floor with a second route that verifies `key` and charges a unit. */
  startGuardedFloor(key: string): Promise<Child>
  /** Available after the first `startAllInOne`. */
  credentials(): Promise<DevelopmentCredentials>
  stop(): Promise<void>
}

/** Address of Kafka. `pid` and `folder` are set only if the bench started it. */
export interface KafkaPlace {
  brokers: string
  pid?: number
  dataDir?: string
}

/** Prevents load shedding on a busy machine, and in a process whose records are not scored. */
const unshed = { COLLECT_MAX_BACKLOG_MS: '1000000000', COLLECT_SOURCE_MB_PER_HOUR: '1000000000' }

/** Starts Postgres in a temporary folder. With `kafka`, that is the log. */
export async function startEnvironment(kafka: KafkaPlace | undefined): Promise<Environment> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-bench-'))
  // PostgreSQL may run as another user, who must be able to enter.
  await chmod(folder, 0o755)
  const postgresDir = path.join(folder, 'postgres')
  const postgres = await startCountingPostgres(postgresDir)
  const settings = {
    DATABASE_URL: postgres.socketUrl,
    DATA_DIR: folder,
    PORT: '0',
    LOG_LEVEL: 'warn',
    // Rate limits are counted as usual, but never reached.
    RATE_LIMIT_SECRET: '1000000000',
    RATE_LIMIT_PUBLISHABLE: '1000000000',
    RATE_LIMIT_CONSOLE: '1000000000',
    TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
    KAFKA_BROKERS: kafka?.brokers ?? '',
    KAFKA_TOPIC_PREFIX: kafka ? `bench${Date.now()}.` : '',
  }
  return {
    logName: kafka ? 'kafka' : 'embedded',
    databaseUrl: postgres.socketUrl,
    settings,
    storePids: [postmasterPid(postgresDir), ...(kafka?.pid ? [kafka.pid] : [])],
    postgresPid: postmasterPid(postgresDir),
    kafkaPid: kafka?.pid,
    logBytes: (pool) => (kafka ? kafkaBytes(kafka) : embeddedBytes(pool)),
    startAllInOne: (options) =>
      startChild(['services/cli/main.ts', 'dev'], {
        ...settings,
        ...(options?.sheds ? {} : unshed),
        ...options?.env,
      }),
    startRoles: (...roles) =>
      startChild(['services/cli/main.ts', 'serve', '--roles', roles.join()], {
        ...settings,
        ...unshed,
      }),
    startUnclaimed: () => startChild(['bench/unclaimed.ts'], { ...settings, ...unshed }),
    startFloor: () => startChild(['bench/floor.ts'], settings),
    startGuardedFloor: (key) =>
      startChild(['bench/guarded-floor.ts'], { ...settings, GUARDED_KEY: key }),
    credentials: async () =>
      JSON.parse(await readFile(path.join(folder, 'credentials.json'), 'utf8')),
    async stop() {
      await postgres.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Starts PostgreSQL with pg_stat_statements. */
async function startCountingPostgres(dataDir: string): Promise<EmbeddedPostgres> {
  const options = { dataDir, logger: createLogger('warn') }
  const first = await startEmbeddedPostgres(options)
  const pool = createPool({ url: first.url, max: 1 })
  await pool.query("alter system set shared_preload_libraries = 'pg_stat_statements'")
  await pool.end()
  await first.stop()
  return startEmbeddedPostgres(options)
}

async function embeddedBytes(pool: pg.Pool): Promise<number> {
  const text = `select pg_total_relation_size('tidegate_log.records')::float8 as bytes`
  const { rows } = await pool.query<{ bytes: number }>(text)
  return rows[0]?.bytes ?? 0
}

async function kafkaBytes({ dataDir }: KafkaPlace): Promise<number> {
  if (dataDir === undefined) return 0
  const files = await readdir(path.join(dataDir, 'log'), { recursive: true, withFileTypes: true })
  // Only segments of topics, not those of Kafka's internal topics.
  const segments = files.filter(
    ({ name, parentPath }) => name.endsWith('.log') && parentPath.includes('tidegate.'),
  )
  const sizes = await Promise.all(
    segments.map(({ name, parentPath }) => stat(path.join(parentPath, name))),
  )
  return sizes.reduce((sum, { size }) => sum + size, 0)
}

function postmasterPid(dataDir: string): number {
  return Number(readFileSync(path.join(dataDir, 'postmaster.pid'), 'utf8').split('\n')[0])
}
