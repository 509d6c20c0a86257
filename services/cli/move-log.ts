import type pg from 'pg'
import { type Config, readConfig } from '../../infra/config.ts'
import { boundLog, rebindLog, refuseShorterLog } from '../../infra/event-store/bound-log.ts'
import { rereadTopic } from '../../infra/event-store/builds.ts'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import { claimTopicSpec } from '../../infra/event-store/log-claim.ts'
import { skipInCopy } from '../../infra/event-store/skips.ts'
import { openKafkaImport } from '../../infra/log/kafka/import.ts'
import {
  findMoved,
  foreignRecords,
  type Move,
  type MovedTopic,
  moveTopic,
} from '../../infra/log/move-topic.ts'
import { type EventLog, type LogRecord, placeName } from '../../infra/log/port.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { retireLog } from '../../infra/log/postgres/retire.ts'
import { readRecords } from '../../infra/log/read-topic.ts'
import { createPool, transaction } from '../../infra/postgres/pool.ts'
import { createLogger } from '../../infra/telemetry.ts'
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
import { createLags } from '../server/lags.ts'
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

// The only topic whose records expire. Its first ones are gone, so the others get other offsets on Kafka.
const expiring = eventTopics.BatchReceived
// Kafka would delete what expires during the move before that is compared.
const expiringSoonMs = 60 * 60 * 1000

export async function runMove({ json }: MoveFlags): Promise<void> {
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  const { DATABASE_URL: url } = config
  if (!url) throw new Error('DATABASE_URL is not set: it must name the database of the log.')
  if (config.KAFKA_BROKERS.length === 0)
    throw new Error('KAFKA_BROKERS is not set: set KAFKA_* as the servers will have them.')
  const logger = createLogger(config.LOG_LEVEL, process.stderr)
  await using stack = new AsyncDisposableStack()

  // 1. Refuse what is no embedded log, is in use, or was not read to its end.
  const pool = createPool({ url, applicationName: 'tidegate move' })
  stack.defer(() => pool.end())
  const target = await openKafka({ config, logger })
  stack.defer(() => target.close())
  const identity = await target.identity()
  await refuseDatabase(pool, identity)
  const source = await openPostgresLog({ pool, url, logger, keepsExpired: true })
  stack.defer(() => source.close())
  await prepareStores({ config, pool, log: source, logger })
  await refuseUnread(pool, source)
  const codec = await openCodec(config, { logger })
  await refuseOtherSchemas(source, codec)
  // Their offsets of it mean nothing on Kafka.
  await rereadTopic(pool, expiring)

  // 2. Make the topics with the partitions of the embedded log, so that keys stay where they are.
  const specs = topicSpecs(config)
  for (const spec of specs) spec.partitions = (await source.endPositions(spec.topic)).length
  await target.ensureTopics(specs)
  for (const { topic, partitions } of specs) {
    const { length } = await target.endPositions(topic)
    if (length !== partitions)
      throw new Error(`${topic} must have ${partitions} partitions on Kafka, got ${length}.`)
  }

  // 3. Copy the records, and compare both logs.
  const kafka = await openKafkaImport(kafkaOptions({ config, logger }))
  stack.defer(() => kafka.close())
  const topics = specs
    .map(({ topic }) => topic)
    .filter((topic) => ![probeTopic, claimTopicSpec.topic].includes(topic))
  // Each record is read from both logs.
  const bar = progressBar(2 * (await countRecords(source, topics)))
  stack.defer(bar.end)
  const change = (record: LogRecord) => skipInCopy(codec, record, expiring)
  const move: Move = { source, target, kafka, change, onRead: bar.add }
  const moved = await moveTopics(move, topics, config)

  // 4. Bind the database to Kafka. Until this commits, the embedded log is as it was.
  const raised = await source.committed(plannerGroup, [eventTopics.SessionScored])
  await kafka.setGroupOffsets(plannerGroup, raised)
  const scored = await target.endPositions(expiring)
  await transaction(pool, async (tx) => {
    const ends = moved.flatMap((one) => one.ends)
    await retireLog(tx, ends)
    await moveOffsets(tx, scored)
    await refuseShorterLog(tx, target)
    await rebindLog(tx, identity)
  })
  bar.end()
  const report = { log: identity, topics: moved.map(({ topic, records }) => ({ topic, records })) }
  console.log(json ? JSON.stringify(report) : textOf(report))
}

/** Moves the topics that are kept forever, then the one that expires. Goes on with what an earlier move left. */
async function moveTopics(
  move: Move,
  topics: string[],
  { COLLECT_RETENTION_DAYS: days }: Config,
): Promise<MovedTopic[]> {
  const { source, target, kafka } = move
  const kept = topics.filter((topic) => topic !== expiring)
  const moves = await Promise.all(
    kept.map(async (topic) => ({ topic, to: await findMoved(move, topic), keepsOffsets: true })),
  )
  if ((await countRecords(target, [expiring])) > 0) {
    if ((await countRecords(target, kept)) === 0) throw foreignRecords(expiring)
    // The first ones may have expired in the embedded log since, so all are copied again.
    await kafka.deleteRecords(expiring)
  }
  const moved = await Promise.all(moves.map((each) => moveTopic(move, each))).catch(stopped)
  const since = Date.now() - days * 24 * 60 * 60 * 1000 + expiringSoonMs
  const from = await source.positionsSince(expiring, since)
  const to = await target.endPositions(expiring)
  const last = { topic: expiring, from, to, keepsOffsets: false }
  return [...moved, await moveTopic(move, last).catch(stopped)]
}

async function refuseDatabase(pool: pg.Pool, target: string): Promise<void> {
  const bound = await boundLog(pool)
  if (bound === target) throw new Error(`The database belongs to ${target} already.`)
  if (bound && !bound.startsWith('embedded log'))
    throw new Error(`The database belongs to ${bound}, and to no embedded log.`)
  const { rows } = await pool.query<{ has_log: boolean; others: number }>(
    `select to_regclass('tidegate_log.records') is not null as has_log,
       (select count(*)::int from pg_stat_activity where datname = current_database()
          and application_name like 'tidegate%' and pid <> pg_backend_pid()) as others`,
  )
  const { has_log: hasLog = false, others = 0 } = rows[0] ?? {}
  if (!hasLog) throw new Error('The database of DATABASE_URL has no embedded log.')
  if (others > 0)
    throw new Error(
      `Servers or commands run on the database, with ${others} connections. Stop them first.`,
    )
}

async function refuseUnread(pool: pg.Pool, log: EventLog): Promise<void> {
  const raised = await log.committed(plannerGroup, [eventTopics.SessionScored])
  const unread = (await createLags({ pool, log })())
    .filter(({ records }) => records > 0)
    // Without a server for webhooks there is no planner.
    .filter(({ labels }) => labels.group !== 'planner' || raised.length > 0)
    .map(({ labels, records }) => `${labels.group} lacks ${records} of ${placeName(labels)}`)
  if (unread.length > 0)
    throw new Error(
      `Consumers have not read all records: ${unread.join(', ')}. Run \`tidegate serve --roles ` +
        'scoring,projections,webhooks` on the embedded log until tidegate_consumer_lag_records is 0, then stop it.',
    )
}

// Nobody could read a log whose schema ids are not those of the settings.
async function refuseOtherSchemas(log: EventLog, codec: EventCodec): Promise<void> {
  const topic = eventTopics.OrganizationCreated
  const [first] = await readRecords(log, topic, await log.firstPositions(topic))
  try {
    if (first) codec.fromRecord(first)
  } catch (cause) {
    throw new Error('Records have other schema ids: set SCHEMA_REGISTRY_URL as it was.', { cause })
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

function stopped(cause: unknown): never {
  throw new Error(
    'The move stopped, and the database still belongs to the embedded log. Run this again, or start the servers as ' +
      `before: ${errorMessage(cause)}`,
    { cause },
  )
}

function textOf({ log, topics }: Report): string {
  const table = tableOf(topics, {
    topic: ({ topic }) => topic,
    'records on both': ({ records }) => records,
  })
  return `${table}\nThe database belongs to ${log}. Start the servers with these settings.`
}
