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
  Record<'RATE_LIMIT_SECRET' | 'RATE_LIMIT_PUBLISHABLE', string> &
  Record<
    'TIDEGATE_MASTER_KEYS' | 'KAFKA_BROKERS' | 'KAFKA_TOPIC_PREFIX' | 'WEBHOOK_ALLOWED_NETWORKS',
    string
  >

export type LogName = 'embedded' | 'kafka'

/** A database of its own, and how to start the programs that are measured on it. */
export interface Environment {
  logName: LogName
  databaseUrl: string
  /** Settings that every program of this environment shares. */
  settings: Settings
  /** Postgres, and Kafka where the bench started it: whose processor time is counted as the store's. */
  storePids: number[]
  postgresPid: number
  /** Absent where the bench did not start Kafka, or the log is embedded. */
  kafkaPid: number | undefined
  /** What the log has on disk. */
  logBytes(pool: pg.Pool): Promise<number>
  /** All roles in one process, as `make run`. It sheds nothing for its backlog unless it is told to. */
  startAllInOne(options?: { sheds: boolean; env?: Record<string, string> }): Promise<Child>
  /** Some roles in a process of their own, as in production. */
  startRoles(...roles: Role[]): Promise<Child>
  /** The role collect without claims of sequence numbers. */
  startUnclaimed(): Promise<Child>
  startFloor(): Promise<Child>
  /** The floor with a second route that verifies `key` and takes a unit. */
  startGuardedFloor(key: string): Promise<Child>
  /** After the first startAllInOne. */
  credentials(): Promise<DevelopmentCredentials>
  stop(): Promise<void>
}

/** Where Kafka is; no pid and folder where the bench did not start it. */
export interface KafkaPlace {
  brokers: string
  pid?: number
  dataDir?: string
}

/** Nothing is shed on a busy machine, or by a process whose records nobody scores meanwhile. */
const unshed = { COLLECT_MAX_BACKLOG_MS: '1000000000', COLLECT_SOURCE_MB_PER_HOUR: '1000000000' }

/** Starts Postgres in a temporary folder. `kafka` given = that is the log. */
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
    // Limits are counted as always, and never reached.
    RATE_LIMIT_SECRET: '1000000000',
    RATE_LIMIT_PUBLISHABLE: '1000000000',
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

/** PostgreSQL with pg_stat_statements, which is loaded at a start. */
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
  // Segments of topics; not those of the group offsets and of the cluster itself.
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
