import type pg from 'pg'
import { type Config, readConfig } from '../../infra/config.ts'
import { boundLogIdentity, rebindLog, refuseShorterLog } from '../../infra/event-store/bound-log.ts'
import { resetViewOffsets } from '../../infra/event-store/builds.ts'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import { claimTopicSpec } from '../../infra/event-store/log-claim.ts'
import { rewriteSkip } from '../../infra/event-store/skips.ts'
import { openKafkaImport } from '../../infra/log/kafka/import.ts'
import {
  foreignRecordsError,
  type Move,
  type MovedTopic,
  moveTopic,
  verifyMoved,
} from '../../infra/log/move-topic.ts'
import { type EventLog, type LogRecord, partitionName } from '../../infra/log/port.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { retireLog } from '../../infra/log/postgres/retire.ts'
import { readRecords } from '../../infra/log/read-topic.ts'
import { createPool, transaction } from '../../infra/postgres/pool.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { countText } from '../../infra/text.ts'
import { errorMessage } from '../../infra/thrown.ts'
import { eventTopics } from '../../schemas/events.ts'
import { moveOffsets } from '../scoring/store.ts'
import {
  kafkaOptions,
  openCodec,
  openKafka,
  prepareStores,
  topicSpecs,
} from '../server/dependencies.ts'
import { createLagReader } from '../server/lags.ts'
import { probeTopic } from '../server/write-probe.ts'
import { plannerGroup } from '../webhooks/planner/planner.ts'
import { progressBar } from './progress.ts'
import { tableOf } from './tables.ts'

export interface MoveFlags {
  json: boolean
}

interface Report {
  log: string
  topics: { topic: string; records: number }[]
}

// The only topic whose records expire. Its first records may be gone, so the others get different offsets on Kafka.
const expiringTopic = eventTopics.BatchReceived
// Records closer to expiry than this are not moved: Kafka could delete them before the logs are compared.
const expiryMarginMs = 60 * 60 * 1000

export async function moveLog({ json }: MoveFlags): Promise<void> {
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  const { DATABASE_URL: url } = config
  if (!url) throw new Error('DATABASE_URL is not set: set it to the database of the embedded log.')
  if (config.KAFKA_BROKERS.length === 0)
    throw new Error(
      'KAFKA_BROKERS is not set: use the KAFKA_* settings that the servers will have.',
    )
  const logger = createLogger(config.LOG_LEVEL, process.stderr)
  await using stack = new AsyncDisposableStack()

  // 1. Check that the embedded log exists, is not in use, and has been read to its end.
  const pool = createPool({ url, applicationName: 'tidegate move' })
  stack.defer(() => pool.end())
  const target = await openKafka({ config, logger })
  stack.defer(() => target.close())
  const identity = await target.identity()
  await requireEmbeddedLog(pool, identity)
  const source = await openPostgresLog({ pool, url, logger, keepsExpired: true })
  stack.defer(() => source.close())
  await prepareStores({ config, pool, log: source, logger })
  await requireConsumersCaughtUp(pool, source)
  const codec = await openCodec(config, { logger })
  await requireReadableSchemas(source, codec)
  // Consumers read this topic again, because its offsets differ on Kafka.
  await resetViewOffsets(pool, expiringTopic)

  // 2. Create the topics with the partition counts of the embedded log, so that keys keep their partitions.
  const specs = topicSpecs(config)
  for (const spec of specs) spec.partitions = (await source.endPositions(spec.topic)).length
  await target.ensureTopics(specs)
  for (const { topic, partitions } of specs) {
    const { length } = await target.endPositions(topic)
    if (length !== partitions)
      throw new Error(`${topic} must have ${partitions} partitions on Kafka, got ${length}.`)
  }

  // 3. Copy the records and compare both logs.
  const kafka = await openKafkaImport(kafkaOptions({ config, logger }))
  stack.defer(() => kafka.close())
  const topics = specs
    .map(({ topic }) => topic)
    .filter((topic) => ![probeTopic, claimTopicSpec.topic].includes(topic))
  // Each record is read from both logs.
  const bar = progressBar(2 * (await countRecords(source, topics)))
  stack.defer(bar.end)
  const transform = (record: LogRecord) => rewriteSkip(codec, record, expiringTopic)
  const move: Move = { source, target, kafka, transform, onRead: bar.add }
  const moved = await moveTopics(move, topics, config)

  // 4. Bind the database to Kafka. Until this commits, the embedded log is unchanged.
  const plannerOffsets = await source.committedPositions(plannerGroup, [eventTopics.SessionScored])
  await kafka.setGroupOffsets(plannerGroup, plannerOffsets)
  const expiringEnds = await target.endPositions(expiringTopic)
  await transaction(pool, async (tx) => {
    const ends = moved.flatMap((topic) => topic.ends)
    await retireLog(tx, ends)
    await moveOffsets(tx, expiringEnds)
    await refuseShorterLog(tx, target)
    await rebindLog(tx, identity)
  })
  bar.end()
  const report = { log: identity, topics: moved.map(({ topic, records }) => ({ topic, records })) }
  console.log(json ? JSON.stringify(report) : textOf(report))
}

/** Moves the topics that are kept forever, then the one that expires. Resumes an interrupted move. */
async function moveTopics(
  move: Move,
  topics: string[],
  { COLLECT_RETENTION_DAYS: days }: Config,
): Promise<MovedTopic[]> {
  const { source, target, kafka } = move
  const permanentTopics = topics.filter((topic) => topic !== expiringTopic)
  const moves = await Promise.all(
    permanentTopics.map(async (topic) => ({
      topic,
      to: await verifyMoved(move, topic),
      keepsOffsets: true,
    })),
  )
  if ((await countRecords(target, [expiringTopic])) > 0) {
    if ((await countRecords(target, permanentTopics)) === 0)
      throw foreignRecordsError(expiringTopic)
    // The embedded log may have expired records since the interrupted move, so copy all of the topic again.
    await kafka.deleteRecords(expiringTopic)
  }
  const moved = await Promise.all(moves.map((options) => moveTopic(move, options))).catch(
    throwMoveFailed,
  )
  const since = Date.now() - days * 24 * 60 * 60 * 1000 + expiryMarginMs
  const from = await source.positionsSince(expiringTopic, since)
  const to = await target.endPositions(expiringTopic)
  const expiringMove = { topic: expiringTopic, from, to, keepsOffsets: false }
  return [...moved, await moveTopic(move, expiringMove).catch(throwMoveFailed)]
}

async function requireEmbeddedLog(pool: pg.Pool, target: string): Promise<void> {
  const bound = await boundLogIdentity(pool)
  if (bound === target) throw new Error(`The database already uses ${target}.`)
  if (bound && !bound.startsWith('embedded log'))
    throw new Error(`The database uses ${bound}, not an embedded log.`)
  const { rows } = await pool.query<{ has_log: boolean; others: number }>(
    `select to_regclass('tidegate_log.records') is not null as has_log,
       (select count(*)::int from pg_stat_activity where datname = current_database()
          and application_name like 'tidegate%' and pid <> pg_backend_pid()) as others`,
  )
  const { has_log: hasLog = false, others = 0 } = rows[0] ?? {}
  if (!hasLog) throw new Error('The database in DATABASE_URL has no embedded log.')
  if (others > 0)
    throw new Error(
      `Servers or commands are using the database (${countText(others, 'connection')}). Stop them first.`,
    )
}

async function requireConsumersCaughtUp(pool: pg.Pool, log: EventLog): Promise<void> {
  const plannerOffsets = await log.committedPositions(plannerGroup, [eventTopics.SessionScored])
  const unread = (await createLagReader({ pool, log })())
    .filter(({ records }) => records > 0)
    // The planner has no offsets if no server has run webhooks.
    .filter(({ labels }) => labels.group !== 'planner' || plannerOffsets.length > 0)
    .map(
      ({ labels, records }) =>
        `${labels.group} is ${countText(records, 'record')} behind on ${partitionName(labels)}`,
    )
  if (unread.length > 0)
    throw new Error(
      `Consumers are behind: ${unread.join(', ')}. Run \`tidegate serve --roles ` +
        'scoring,projections,webhooks` on the embedded log until tidegate_consumer_lag_records is 0, then stop it.',
    )
}

// Throws if the records' schema ids are not those of the configured schema registry: no server could read them.
async function requireReadableSchemas(log: EventLog, codec: EventCodec): Promise<void> {
  const topic = eventTopics.OrganizationCreated
  const [first] = await readRecords(log, topic, await log.firstPositions(topic))
  try {
    if (first) codec.fromRecord(first)
  } catch (cause) {
    throw new Error(
      'The schema ids of the records do not match: set SCHEMA_REGISTRY_URL to its previous value.',
      { cause },
    )
  }
}

async function countRecords(log: EventLog, topics: string[]): Promise<number> {
  let count = 0
  for (const topic of topics) {
    for (const { offset } of await log.endPositions(topic)) count += offset
    for (const { offset } of await log.firstPositions(topic)) count -= offset
  }
  return count
}

function throwMoveFailed(cause: unknown): never {
  throw new Error(
    'The move failed, and the database still uses the embedded log. Run the command again, or start the servers ' +
      `with their previous settings: ${errorMessage(cause)}`,
    { cause },
  )
}

function textOf({ log, topics }: Report): string {
  const table = tableOf(topics, {
    topic: ({ topic }) => topic,
    records: ({ records }) => records,
  })
  return `${table}\nThe database now uses ${log}. Start the servers with these settings.`
}
