import type pg from 'pg'
import { type Config, readConfig } from '../../../infra/config.ts'
import { boundLog, rebindLog, refuseShorterLog } from '../../../infra/event-store/bound-log.ts'
import { claimTopicSpec } from '../../../infra/event-store/log-claim.ts'
import type { EventLog, TopicSpec } from '../../../infra/log/port.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { retireLog } from '../../../infra/log/postgres/retire.ts'
import { createPool, transaction } from '../../../infra/postgres/pool.ts'
import { createLogger } from '../../../infra/telemetry.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { moveOffsets } from '../../scoring/store.ts'
import { openCodec, openKafka, prepareStores, topicSpecs } from '../../server/dependencies.ts'
import { probeTopic } from '../../server/write-probe.ts'
import { plannerGroup } from '../../webhooks/planner/planner.ts'
import { progress } from '../progress.ts'
import { tableOf } from '../tables.ts'
import {
  type Copied,
  type CopyDeps,
  compareTopics,
  copyTopics,
  refuseOtherSchemas,
} from './copy.ts'

export interface CopyFlags {
  bind: boolean
  json: boolean
}

interface Report {
  /** The Kafka that was copied to. */
  log: string
  bound: boolean
  topics: { topic: string; copied: number; compared: number | null }[]
}

export async function runCopy(flags: CopyFlags): Promise<void> {
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  const { DATABASE_URL: url, KAFKA_BROKERS: brokers } = config
  if (!url)
    throw new Error('DATABASE_URL is not set: it names the database that has the embedded log.')
  if (brokers.length === 0)
    throw new Error(
      'KAFKA_BROKERS is not set: it names the Kafka to copy to, as servers will have it.',
    )
  const logger = createLogger(config.LOG_LEVEL, process.stderr)
  await using stack = new AsyncDisposableStack()
  const pool = createPool({ url, applicationName: 'tidegate copy' })
  stack.defer(() => pool.end())
  const target = await openKafka({ config, logger })
  stack.defer(() => target.close())
  await refuseOthers(pool, await target.identity(), flags)
  // Expired records stay meanwhile, since one of the two logs would lack them.
  const source = await openPostgresLog({ pool, url, logger, keepsExpired: true })
  stack.defer(() => source.close())
  await prepareStores({ config, pool, log: source, logger })
  const specs = await specsOf(source, config)
  const copying = {
    source,
    target,
    onProgress: progress(),
    codec: await openCodec(config, { logger }),
    specs: specs.filter(({ topic }) => topic !== probeTopic && topic !== claimTopicSpec.topic),
  }
  await refuseOtherSchemas(copying)
  await target.ensureTopics(specs)
  const report = await copyAndBind(copying, pool, flags)
  console.log(flags.json ? JSON.stringify(report) : textOf(report))
}

async function refuseOthers(pool: pg.Pool, target: string, { bind }: CopyFlags): Promise<void> {
  const bound = await boundLog(pool)
  if (bound === target)
    throw new Error(`The database belongs to ${target} already: there is nothing to copy.`)
  if (bound && !bound.startsWith('embedded log'))
    throw new Error(`The database belongs to ${bound}, and to no embedded log.`)
  const { rows } = await pool.query<{ has_log: boolean; others: number }>(
    `select to_regclass('tidegate_log.records') is not null as has_log,
       (select count(*)::int from pg_stat_activity where datname = current_database()
          and application_name like 'tidegate%' and pid <> pg_backend_pid()) as others`,
  )
  const { has_log: hasLog = false, others = 0 } = rows[0] ?? {}
  if (!hasLog) throw new Error('The database of DATABASE_URL has no embedded log.')
  if (bind && others > 0)
    throw new Error(
      `Servers or commands run on the database, with ${others} connections. Stop them, or copy with --no-bind first.`,
    )
}

async function copyAndBind(copying: CopyDeps, pool: pg.Pool, { bind }: CopyFlags): Promise<Report> {
  const copied = await copyTopics(copying, { withSkips: bind })
  const compared = bind ? await compareTopics(copying, copied) : undefined
  if (bind) await bindCopy(copying, pool, copied)
  const topics = copied.topics.map((one) => ({
    ...one,
    compared: compared?.get(one.topic) ?? null,
  }))
  return { log: await copying.target.identity(), bound: bind, topics }
}

// Topics get as many partitions as the source has, so that keys stay where they are.
function specsOf(source: EventLog, config: Config): Promise<TopicSpec[]> {
  return Promise.all(
    topicSpecs(config).map(async (spec) => {
      const { length: partitions } = await source.endPositions(spec.topic)
      return { ...spec, partitions }
    }),
  )
}

async function bindCopy(
  { source, target }: CopyDeps,
  pool: pg.Pool,
  { ends, moved }: Copied,
): Promise<void> {
  const raised = await source.committed(plannerGroup, [eventTopics.SessionScored])
  if (raised.length > 0) await target.commit(plannerGroup, raised)
  const identity = await target.identity()
  await transaction(pool, async (tx) => {
    await retireLog(tx, ends)
    for (const [topic, offsets] of moved) await moveOffsets(tx, topic, offsets.ofNext)
    await refuseShorterLog(tx, target)
    await rebindLog(tx, identity)
  })
}

function textOf({ log, bound, topics }: Report): string {
  const table = tableOf(topics, {
    topic: ({ topic }) => topic,
    'copied now': ({ copied }) => copied,
    'equal on both': ({ compared }) => compared,
  })
  const next = bound
    ? `The database belongs to ${log}. Compare with "tidegate rebuild", then start servers with these settings.`
    : 'The database still belongs to the embedded log. Stop the servers, and run this without --no-bind.'
  return `${table}\n${next}`
}
