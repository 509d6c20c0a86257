import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { keyUsageMigrations } from '../../infra/access/key-usage.ts'
import { rateLimitMigrations } from '../../infra/access/rate-limit/postgres-store.ts'
import { createReadShares, type ReadShares } from '../../infra/access/read-shares.ts'
import type { Config } from '../../infra/config.ts'
import { createKeyring, type Keyring } from '../../infra/crypto/keyring.ts'
import { type Applied, createApplied } from '../../infra/event-store/applied.ts'
import { bindLog, refuseBoundToKafka } from '../../infra/event-store/bound-log.ts'
import { migrate } from '../../infra/event-store/builds.ts'
import { type CodecOptions, createCodec, type EventCodec } from '../../infra/event-store/codec.ts'
import { dataKeyMigrations, dataKeyPoolOptions } from '../../infra/event-store/data-key-table.ts'
import { createDataKeys, type DataKeys } from '../../infra/event-store/data-keys.ts'
import { createDecide, type DecideAs } from '../../infra/event-store/decide.ts'
import { claimLog, claimTopicSpec } from '../../infra/event-store/log-claim.ts'
import { watchLog } from '../../infra/event-store/log-watch.ts'
import { canaryMigrations } from '../../infra/event-store/master-key-canary.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { registerSchemas } from '../../infra/event-store/registry.ts'
import { createSkips, type Skips } from '../../infra/event-store/skips.ts'
import { idempotencyMigrations } from '../../infra/idempotency/store.ts'
import type { Clock, Random } from '../../infra/ids.ts'
import { kafkaSecurity } from '../../infra/log/kafka/security.ts'
import { backoffMs, type EventLog, LogUnavailable, type TopicSpec } from '../../infra/log/port.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import type { Tracing } from '../../infra/otlp/port.ts'
import { runMigrations } from '../../infra/postgres/migrations.ts'
import { createPool, transaction } from '../../infra/postgres/pool.ts'
import { refusePooler } from '../../infra/postgres/pooler.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { maxBodyBytes } from '../../infra/wire/collect/protocol.ts'
import { answersProjection } from '../../projections/answers/projection.ts'
import { auditProjection } from '../../projections/audit/projection.ts'
import { correctionsProjection } from '../../projections/corrections/projection.ts'
import { createErasuresProjection } from '../../projections/erasures/projection.ts'
import { gateProjection } from '../../projections/gate/projection.ts'
import { organizationsProjection } from '../../projections/organizations/projection.ts'
import { policiesProjection } from '../../projections/policies/projection.ts'
import { repeatsProjection } from '../../projections/repeats/projection.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { webhooksProjection } from '../../projections/webhooks/projection.ts'
import { eventTopics } from '../../schemas/events.ts'
import { type Claim, claimMigrations, claimsAsGuards } from '../collect/claims.ts'
import { consoleMigrations } from '../console/store.ts'
import { gateMigrations } from '../gate/gate.ts'
import { attestationMigrations } from '../scoring/attestation/tables.ts'
import { eraseStates } from '../scoring/erase.ts'
import { identityMigrations } from '../scoring/identity/tables.ts'
import { scoringMigrations } from '../scoring/tables.ts'
import { leaseMigrations } from '../webhooks/leases.ts'
import type { Connections } from './connections.ts'
import { checkMasterKeys } from './master-keys.ts'
import { probeMigrations, probeTopicSpec } from './write-probe.ts'

export const projections: Projection[] = [
  createErasuresProjection([eraseStates]),
  organizationsProjection,
  policiesProjection,
  sessionsProjection,
  repeatsProjection,
  gateProjection,
  webhooksProjection,
  answersProjection,
  correctionsProjection,
  auditProjection,
]

export interface Core {
  config: Config
  databaseUrl: string
  pool: pg.Pool
  /** For reads of API callers: however slow or many they are, nothing else waits for them. */
  readPool: pg.Pool
  /** Divides the read pool between organizations. */
  shares: ReadShares
  log: EventLog<Claim>
  /** Returns why appends are refused; undefined while they are not. */
  logRefusal: () => Error | undefined
  codec: EventCodec
  /** The keys under which what is personal in the events of a session is encrypted. */
  dataKeys: DataKeys
  skips: Skips
  applied: Applied
  decideAs: DecideAs
  keyring: Keyring
  clock: Clock
  random: Random
  logger: Logger
  tracing: Tracing | undefined
  close(): Promise<void>
}

export interface CoreOptions {
  config: Config
  databaseUrl: string
  masterKeys: string
  logger: Logger
  clock: Clock
  random: Random
  /** Queries have no time limit, as when a read model is built. */
  longQueries?: boolean
  /** Whether LOG_WAIT_MS counts, as it does for a server's start. */
  waitsForLog?: boolean
  /** How many connections the two shared pools of a server have; a command has its own numbers. */
  connections?: Pick<Connections, 'pool' | 'reads'>
  tracing?: Tracing | undefined
  /** Watches the log, and claims Kafka for this database. Default: neither, as for a command that only asks. */
  holdsLog?: {
    /** Also from another database. */
    takeOver: boolean
    /** Called once when another database has taken the log over. */
    onLost?: (error: Error) => void
  }
}

// A server's query without an answer by then means that the database is gone.
const serving = { queryTimeoutMs: 10_000, idleInTransactionMs: 15_000 }
// Statements that score and project find rows by their keys, so that one plan by the indexes suits any number of rows.
// By default Postgres plans some of them for each session, and goes on with scans that it planned for empty tables.
const byKeys = { settings: { plan_cache_mode: 'force_generic_plan', enable_seqscan: 'off' } }
// Compiling a statement takes Postgres longer than running it, where it estimates that millions of rows may be read.
const reading = {
  ...serving,
  queryTimeoutMs: 6000,
  statementTimeoutMs: 5000,
  settings: { jit: 'off' },
}
const ofCommands = { pool: 20, reads: 1 }

export async function openCore(options: CoreOptions): Promise<Core> {
  const { config, databaseUrl, logger, clock, random, tracing } = options
  const keyring = createKeyring(options.masterKeys)
  await using undo = new AsyncDisposableStack()
  const { pool: max, reads } = options.connections ?? ofCommands
  const pool = createPool({
    url: databaseUrl,
    max,
    ...(options.longQueries ? {} : { ...serving, ...byKeys }),
  })
  undo.defer(() => pool.end())
  await refusePooler(pool)
  const ofReads = { max: Math.max(1, reads), applicationName: 'tidegate reads', ...reading }
  const readPool = createPool({ url: databaseUrl, ...ofReads })
  undo.defer(() => readPool.end())
  const shares = createReadShares({ clock, connections: ofReads.max })
  const dataKeys = openDataKeys({ config, databaseUrl, keyring, random, clock }, undo)
  const { storedWith } = dataKeys
  const opened = await openLog({
    config,
    pool,
    url: databaseUrl,
    logger,
    storedWith,
    guardedBy: claimsAsGuards,
  })
  undo.defer(() => opened.close())
  const isOnKafka = config.KAFKA_BROKERS.length > 0
  // The embedded log is restored and copied with its database, so marks would show nothing.
  const topics = isOnKafka ? [...new Set(Object.values(eventTopics))] : []
  const watch = watchLog(opened, { pool, logger, topics })
  undo.defer(watch.stop)
  const log = tracing?.log(watch.log) ?? watch.log
  const waiting = { waitMs: options.waitsForLog ? config.LOG_WAIT_MS : 0, logger }
  await prepareStores({ config, pool, log, logger }, waiting)
  await checkMasterKeys({ pool, log, keyring, random })
  if (options.holdsLog) {
    const { takeOver, onLost } = options.holdsLog
    const lose = (error: Error) => {
      watch.refuse(error)
      onLost?.(error)
    }
    const claiming = { pool, log: opened, logger, host: hostname(), takeOver, onLost: lose }
    if (isOnKafka) undo.use(await whileUnavailable(() => claimLog(claiming), waiting))
    watch.start()
  }
  const codec = await openCodec(config, { logger, sealing: { keys: dataKeys, random } })
  const skips = createSkips({ log, codec, logger })
  undo.defer(() => skips.close())
  const applied = await createApplied({ url: databaseUrl, pool, logger })
  undo.defer(() => applied.close())
  undo.defer(applied.onChange('erasures', dataKeys.forget))
  const decideAs = createDecide({ pool, log, codec, applied })
  const undoing = undo.move()
  const close = () => undoing.disposeAsync()
  const stores = { config, databaseUrl, pool, readPool, shares, log, logRefusal: watch.refusal }
  const shared = { ...stores, codec, dataKeys, skips, applied, decideAs }
  return { ...shared, keyring, clock, random, logger, tracing, close }
}

/**
 * Makes the topics and tables that are missing, as `tidegate migrate` does. For `waitMs` a log that does not answer is
 * tried again; default not at all. Throws WrongLog.
 */
export async function prepareStores(
  { config, pool, log, logger }: Pick<Core, 'config' | 'pool' | 'log' | 'logger'>,
  { adoptLog: adopt = false, waitMs = 0 } = {},
): Promise<void> {
  await migrate(pool, projections)
  await createServingTables(pool)
  const bind = () => bindLog({ pool, log, topics: topicSpecs(config), adopt })
  await whileUnavailable(bind, { waitMs, logger })
}

// A broker that is starting, or has much to do, answers late or not yet. A next try finds what an earlier one has made.
async function whileUnavailable<T>(
  attempt: () => Promise<T>,
  { waitMs, logger }: { waitMs: number; logger: Logger },
): Promise<T> {
  const endAt = performance.now() + waitMs
  for (let failures = 1; ; failures++) {
    try {
      return await attempt()
    } catch (err) {
      const pause = backoffMs(failures)
      if (!(err instanceof LogUnavailable) || performance.now() + pause > endAt) throw err
      if (failures === 1)
        logger.warn({ err }, 'the log does not answer yet; see KAFKA_BROKERS and LOG_WAIT_MS')
      await delay(pause)
    }
  }
}

const servingMigrations = [
  rateLimitMigrations,
  keyUsageMigrations,
  idempotencyMigrations,
  claimMigrations,
  dataKeyMigrations,
  canaryMigrations,
  // Collect reads how far scoring is, wherever that runs.
  scoringMigrations,
  identityMigrations,
  attestationMigrations,
  leaseMigrations,
  gateMigrations,
  consoleMigrations,
  probeMigrations,
]

export function createServingTables(pool: pg.Pool): Promise<void> {
  return transaction(pool, (tx) => runMigrations(tx, servingMigrations))
}

interface LogOptions extends Pick<Core, 'config' | 'pool' | 'logger'> {
  url: string
  /** What the embedded log stores with records. */
  storedWith?: DataKeys['storedWith']
  guardedBy?: typeof claimsAsGuards
  isReadOnly?: boolean
}

export async function openLog({
  config,
  logger,
  ...embedded
}: LogOptions): Promise<EventLog<Claim>> {
  if (config.KAFKA_BROKERS.length > 0) return openKafka({ config, logger })
  await refuseBoundToKafka(embedded.pool)
  return openPostgresLog({ logger, ...embedded })
}

export async function openKafka(options: Pick<LogOptions, 'config' | 'logger'>): Promise<EventLog> {
  const { openKafkaLog } = await import('../../infra/log/kafka/log.ts')
  return openKafkaLog(kafkaOptions(options))
}

export const kafkaOptions = ({ config, logger }: Pick<LogOptions, 'config' | 'logger'>) => ({
  brokers: config.KAFKA_BROKERS,
  topicPrefix: config.KAFKA_TOPIC_PREFIX,
  security: kafkaSecurity(config),
  replicationFactor: config.KAFKA_REPLICATION_FACTOR,
  minInsyncReplicas: config.KAFKA_MIN_INSYNC_REPLICAS,
  compressionType: config.KAFKA_COMPRESSION_TYPE,
  logger,
})

// People and back ends cause few of these events, and each further partition costs every fetch of a consumer.
const singlePartitionTopics: ReadonlySet<string> = new Set([
  eventTopics.OrganizationCreated,
  eventTopics.RecordSkipped,
  eventTopics.OrganizationDataExpired,
  eventTopics.VisitorErased,
  eventTopics.VisitorCorrected,
])

// A body, and what is recorded with it, of which the headers of a request are the most.
const largestRecordBytes = maxBodyBytes + 32 * 1024

/** Observations are heavy and stay for days. Other events are light and stay for ever. */
export function topicSpecs(
  config: Pick<Config, 'TOPIC_PARTITIONS' | 'COLLECT_RETENTION_DAYS'>,
): TopicSpec[] {
  const partitions = config.TOPIC_PARTITIONS
  const retentionMs = config.COLLECT_RETENTION_DAYS * 24 * 60 * 60 * 1000
  const ofEvents = [...new Set(Object.values(eventTopics))].map((topic): TopicSpec => {
    if (topic === eventTopics.BatchReceived)
      return { topic, partitions, retentionMs, largestRecordBytes }
    return { topic, partitions: singlePartitionTopics.has(topic) ? 1 : partitions }
  })
  return [...ofEvents, probeTopicSpec, claimTopicSpec]
}

// Keys have connections of their own, so that who needs one waits for nothing else in the database.
function openDataKeys(
  {
    config,
    databaseUrl,
    ...parts
  }: Pick<Core, 'config' | 'databaseUrl' | 'keyring' | 'random' | 'clock'>,
  undo: AsyncDisposableStack,
): DataKeys {
  const isLogEmbedded = config.KAFKA_BROKERS.length === 0
  const pool = createPool({ url: databaseUrl, ...dataKeyPoolOptions({ isLogEmbedded }) })
  undo.defer(() => pool.end())
  return createDataKeys({ pool, isLogEmbedded, ...parts })
}

export async function openCodec(
  config: Config,
  { logger, sealing }: { logger: Logger; sealing?: CodecOptions['sealing'] },
): Promise<EventCodec> {
  const { SCHEMA_REGISTRY_URL: url, KAFKA_TOPIC_PREFIX: topicPrefix } = config
  const ids = url ? await registerSchemas({ url, topicPrefix, logger }) : undefined
  return createCodec(ids, { sealing })
}
