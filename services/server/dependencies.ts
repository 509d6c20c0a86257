import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { keyUsageMigrations } from '../../infra/access/key-usage.ts'
import { rateLimitMigrations } from '../../infra/access/rate-limit/postgres-store.ts'
import { createReadLimiter, type ReadLimiter } from '../../infra/access/read-limiter.ts'
import type { Config } from '../../infra/config.ts'
import { createKeyring, type Keyring } from '../../infra/crypto/keyring.ts'
import { type AppliedOffsets, createAppliedOffsets } from '../../infra/event-store/applied.ts'
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
import { kafkaSecurityOptions } from '../../infra/log/kafka/security.ts'
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
import { viewMigrations } from '../readback/views/store.ts'
import { attestationMigrations } from '../scoring/attestation/tables.ts'
import { eraseScoringData } from '../scoring/erase.ts'
import { identityMigrations } from '../scoring/identity/tables.ts'
import { scoringMigrations } from '../scoring/tables.ts'
import { leaseMigrations } from '../webhooks/leases.ts'
import type { Connections } from './connections.ts'
import { checkMasterKeys } from './master-keys.ts'
import { probeMigrations, probeTopicSpec } from './write-probe.ts'

export const projections: Projection[] = [
  createErasuresProjection([eraseScoringData]),
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
  /** Pool for API reads, separate so that nothing else waits for slow ones. */
  readPool: pg.Pool
  /** Shares the read pool fairly among organizations. */
  readLimiter: ReadLimiter
  log: EventLog<Claim>
  /** Returns why appends are refused; undefined if they are not. */
  logRefusal: () => Error | undefined
  codec: EventCodec
  /** Keys that encrypt the personal data in the events of a session. */
  dataKeys: DataKeys
  skips: Skips
  applied: AppliedOffsets
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
  /** Disables query timeouts, for example to build a read model. */
  allowsLongQueries?: boolean
  /** Waits up to LOG_WAIT_MS for the log, as a server does when it starts. */
  waitsForLog?: boolean
  /** Sizes of the two shared pools. Default: the sizes for a command. */
  connections?: Pick<Connections, 'pool' | 'reads'>
  tracing?: Tracing | undefined
  /** Watches the log and claims Kafka for this database. Default: neither, as for a command that only reads. */
  logClaim?: {
    /** Claims it even if another database holds it. */
    takeOver: boolean
    /** Called once if another database takes over the log. */
    onLost?: (error: Error) => void
  }
}

// A query that takes longer means that the database is down.
const serverTimeouts = { queryTimeoutMs: 10_000, idleInTransactionMs: 15_000 }
// Scoring and projections look up rows by key, so one generic index plan suits every table size. By default, PostgreSQL
// plans some statements again per connection, and keeps sequential scans that it chose while tables were empty.
const indexPlans = { settings: { plan_cache_mode: 'force_generic_plan', enable_seqscan: 'off' } }
// PostgreSQL uses JIT when it expects millions of rows, but compiling takes longer than these statements.
const readPoolOptions = {
  ...serverTimeouts,
  queryTimeoutMs: 6000,
  statementTimeoutMs: 5000,
  settings: { jit: 'off' },
}
const commandConnections = { pool: 20, reads: 1 }

/** Opens the database, the log and everything else that commands and roles share. Throws WrongLog, WrongMasterKeys. */
export async function openCore(options: CoreOptions): Promise<Core> {
  const { config, databaseUrl, logger, clock, random, tracing } = options
  const keyring = createKeyring(options.masterKeys)
  await using undo = new AsyncDisposableStack()
  const { pool: max, reads } = options.connections ?? commandConnections
  const pool = createPool({
    url: databaseUrl,
    max,
    ...(options.allowsLongQueries ? {} : { ...serverTimeouts, ...indexPlans }),
  })
  undo.defer(() => pool.end())
  await refusePooler(pool)
  const maxReads = Math.max(1, reads)
  const readPool = createPool({
    url: databaseUrl,
    max: maxReads,
    applicationName: 'tidegate reads',
    ...readPoolOptions,
  })
  undo.defer(() => readPool.end())
  const readLimiter = createReadLimiter({ clock, connections: maxReads })
  const dataKeys = openDataKeys({ config, databaseUrl, keyring, random, clock }, undo)
  const rawLog = await openLog({
    config,
    pool,
    url: databaseUrl,
    logger,
    extraWrites: dataKeys.takeInserts,
    guardWrites: claimsAsGuards,
  })
  undo.defer(() => rawLog.close())
  const isOnKafka = config.KAFKA_BROKERS.length > 0
  // The embedded log cannot diverge from its database, because both are restored and copied together.
  const topics = isOnKafka ? [...new Set(Object.values(eventTopics))] : []
  const watch = watchLog(rawLog, { pool, logger, topics })
  undo.defer(watch.stop)
  const log = tracing?.wrapLog(watch.log) ?? watch.log
  const retryOptions = { waitMs: options.waitsForLog ? config.LOG_WAIT_MS : 0, logger }
  await prepareStores({ config, pool, log, logger }, retryOptions)
  await checkMasterKeys({ pool, log, keyring, random })
  if (options.logClaim) {
    const { takeOver, onLost } = options.logClaim
    const handleLoss = (error: Error) => {
      watch.refuse(error)
      onLost?.(error)
    }
    const claim = { pool, log: rawLog, logger, host: hostname(), takeOver, onLost: handleLoss }
    if (isOnKafka) undo.use(await retryWhileUnavailable(() => claimLog(claim), retryOptions))
    watch.start()
  }
  const codec = await openCodec(config, { logger, sealing: { keys: dataKeys, random } })
  const skips = createSkips({ log, codec, logger })
  undo.defer(() => skips.close())
  const applied = await createAppliedOffsets({ url: databaseUrl, pool, logger })
  undo.defer(() => applied.close())
  undo.defer(applied.onChange('erasures', dataKeys.evict))
  const decideAs = createDecide({ pool, log, codec, applied })
  const cleanup = undo.move()
  const close = () => cleanup.disposeAsync()
  const stores = {
    config,
    databaseUrl,
    pool,
    readPool,
    readLimiter,
    log,
    logRefusal: watch.refusal,
  }
  const shared = { ...stores, codec, dataKeys, skips, applied, decideAs }
  return { ...shared, keyring, clock, random, logger, tracing, close }
}

/**
 * Creates missing topics and tables, as `tidegate migrate` does. Retries for `waitMs` (default 0) while the log is
 * unavailable. Throws WrongLog.
 */
export async function prepareStores(
  { config, pool, log, logger }: Pick<Core, 'config' | 'pool' | 'log' | 'logger'>,
  { adoptLog: adopt = false, waitMs = 0 } = {},
): Promise<void> {
  await migrate(pool, projections)
  await createServingTables(pool)
  const bind = () => bindLog({ pool, log, topics: topicSpecs(config), adopt })
  await retryWhileUnavailable(bind, { waitMs, logger })
}

// Retries while brokers are starting or overloaded. `attempt` must be idempotent.
async function retryWhileUnavailable<T>(
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
        logger.warn({ err }, 'waiting for the log: check KAFKA_BROKERS and LOG_WAIT_MS')
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
  // Collect reads the offsets of scoring, in whichever process it runs.
  scoringMigrations,
  identityMigrations,
  attestationMigrations,
  leaseMigrations,
  gateMigrations,
  consoleMigrations,
  viewMigrations,
  probeMigrations,
]

export function createServingTables(pool: pg.Pool): Promise<void> {
  return transaction(pool, (tx) => runMigrations(tx, servingMigrations))
}

interface LogOptions extends Pick<Core, 'config' | 'pool' | 'logger'> {
  url: string
  /** Rows that the embedded log writes together with records. */
  extraWrites?: DataKeys['takeInserts']
  guardWrites?: typeof claimsAsGuards
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
  security: kafkaSecurityOptions(config),
  replicationFactor: config.KAFKA_REPLICATION_FACTOR,
  minInsyncReplicas: config.KAFKA_MIN_INSYNC_REPLICAS,
  compressionType: config.KAFKA_COMPRESSION_TYPE,
  logger,
})

// These events are rare, and every additional partition makes each consumer fetch more expensive.
const singlePartitionTopics: ReadonlySet<string> = new Set([
  eventTopics.OrganizationCreated,
  eventTopics.RecordSkipped,
  eventTopics.OrganizationDataExpired,
  eventTopics.VisitorErased,
  eventTopics.VisitorCorrected,
])

// A body plus its metadata, mostly request headers.
const maxRecordBytes = maxBodyBytes + 32 * 1024

/** Returns all topics. Observations are large and expire after days; other events are small and kept forever. */
export function topicSpecs(
  config: Pick<Config, 'TOPIC_PARTITIONS' | 'COLLECT_RETENTION_DAYS'>,
): TopicSpec[] {
  const partitions = config.TOPIC_PARTITIONS
  const retentionMs = config.COLLECT_RETENTION_DAYS * 24 * 60 * 60 * 1000
  const eventTopicSpecs = [...new Set(Object.values(eventTopics))].map((topic): TopicSpec => {
    if (topic === eventTopics.BatchReceived)
      return { topic, partitions, retentionMs, maxRecordBytes }
    return { topic, partitions: singlePartitionTopics.has(topic) ? 1 : partitions }
  })
  return [...eventTopicSpecs, probeTopicSpec, claimTopicSpec]
}

// Uses a separate pool, so that requests for data keys do not wait for other queries.
function openDataKeys(
  {
    config,
    databaseUrl,
    ...deps
  }: Pick<Core, 'config' | 'databaseUrl' | 'keyring' | 'random' | 'clock'>,
  undo: AsyncDisposableStack,
): DataKeys {
  const isLogEmbedded = config.KAFKA_BROKERS.length === 0
  const pool = createPool({ url: databaseUrl, ...dataKeyPoolOptions({ isLogEmbedded }) })
  undo.defer(() => pool.end())
  return createDataKeys({ pool, isLogEmbedded, ...deps })
}

export async function openCodec(
  config: Config,
  { logger, sealing }: { logger: Logger; sealing?: CodecOptions['sealing'] },
): Promise<EventCodec> {
  const { SCHEMA_REGISTRY_URL: url, KAFKA_TOPIC_PREFIX: topicPrefix } = config
  const ids = url ? await registerSchemas({ url, topicPrefix, logger }) : undefined
  return createCodec(ids, { sealing })
}
