import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { z } from 'zod'
import { runPeriodically } from '../flow/periodic.ts'
import type { Batch, EventLog, TopicSpec } from '../log/port.ts'
import { readTopic } from '../log/read-topic.ts'
import { WrongLog } from './bound-log.ts'

// A lease on the log, as records of a topic of its own. The database that claimed the log first holds the lease and
// renews it with further records; only a take-over replaces a live claim.
const topic = 'tidegate.claim.v1'
export const claimTopicSpec: TopicSpec = { topic, partitions: 1, retentionMs: 60 * 60 * 1000 }

const liveMs = 60_000
// Checked every ten seconds, so a claim is renewed after 25 seconds at the latest.
const renewMs = 15_000
const renewalWaitMs = 30_000
const maxRecordsRead = 500

const claimSchema = z.object({
  installation_id: z.string(),
  /** Postgres cluster and database, so a dump that was restored elsewhere has another id. */
  database_id: z.string(),
  database: z.string(),
  host: z.string(),
  take_over: z.boolean(),
})

type ClaimData = z.infer<typeof claimSchema>
export type LogClaim = ClaimData & { offset: number; time: number }

/** Returns the claim in force: the first one, its latest renewal, or the latest take-over. */
export function holderOf(claims: LogClaim[]): LogClaim | undefined {
  return claims.reduce<LogClaim | undefined>((holder, claim) => {
    const isBlocked =
      holder !== undefined && holder.database_id !== claim.database_id && !claim.take_over
    return isBlocked ? holder : claim
  }, undefined)
}

/** Thrown if another database holds the log. */
class LogClaimed extends WrongLog {
  constructor({ host, database, database_id, installation_id, time }: LogClaim) {
    super(
      `The log belongs to another database: "${database}" (${database_id}, installation ${installation_id}), claimed by ` +
        `server ${host} at ${new Date(time).toISOString()}. Set KAFKA_TOPIC_PREFIX to another prefix. To move the ` +
        'log to this database, run `tidegate restore` or `tidegate serve --take-over-log` ' +
        '(docs/operate/kafka.md, One database per Kafka prefix).',
    )
  }
}

interface ClaimOptions {
  pool: pg.Pool
  log: EventLog
  host: string
  /** Takes the log over even from a live claim of another database. */
  takeOver: boolean
  /** Called once when another database takes the log over. */
  onLost: (error: LogClaimed) => void
  logger: Logger
}

/** Claims the log for this database until disposed. Throws LogClaimed if another database holds it. */
export async function claimLog(options: ClaimOptions): Promise<AsyncDisposable> {
  const { pool, log, host, takeOver, onLost, logger } = options
  await using undo = new AsyncDisposableStack()

  // 1. Identify this database.
  const { rows } = await pool.query<
    Pick<ClaimData, 'installation_id' | 'database_id' | 'database'>
  >(
    `select installation_id, current_database() as database,
       (select system_identifier from pg_control_system()) || '/' ||
         (select oid from pg_database where datname = current_database()) as database_id
     from tidegate.bound_log`,
  )
  const [identity] = rows
  if (!identity) throw new Error('the database is not bound to a log')

  // 2. Follow the claims.
  let holder: LogClaim | undefined
  let claimedAt = Number.POSITIVE_INFINITY
  const foreignHolder = () => (holder?.database_id === identity.database_id ? undefined : holder)

  function recordClaims(batches: Batch[]): void {
    for (const { value, offset, timestamp: time } of batches.flatMap(({ records }) => records)) {
      const claim = { ...claimSchema.parse(JSON.parse(value.toString())), offset, time }
      holder = holderOf(holder ? [holder, claim] : [claim])
      const foreign = foreignHolder()
      if (!foreign || offset < claimedAt) continue
      claimedAt = Number.POSITIVE_INFINITY
      onLost(new LogClaimed(foreign))
    }
  }

  const [end] = await log.endPositions(topic)
  const from = Math.max(0, (end?.offset ?? 0) - maxRecordsRead)
  const claims = await readTopic({ log, topic, from: () => from, handle: recordClaims })
  undo.defer(claims.stop)
  await claims.reachedEnd

  // 3. Respect a live claim. Wait before replacing an old one, because clocks differ and renewals may be late.
  const foreign = foreignHolder()
  if (foreign && !takeOver) {
    const isLive = Date.now() - foreign.time < liveMs
    if (!isLive) await delay(renewalWaitMs)
    const current = foreignHolder()
    if (current && (isLive || current !== foreign)) throw new LogClaimed(current)
  }

  // 4. Claim the log.
  async function append(take_over: boolean): Promise<number> {
    const value = Buffer.from(JSON.stringify({ ...identity, host, take_over }))
    const [at] = await log.append([{ topic, key: 'claim', value, headers: {} }])
    return at?.offset ?? 0
  }
  claimedAt = await append(takeOver || foreign !== undefined)

  // 5. Renew the claim, unless another process of this database did.
  const { stop } = runPeriodically({
    intervalMs: 10_000,
    async work() {
      if (!foreignHolder() && Date.now() - (holder?.time ?? 0) >= renewMs) await append(false)
    },
    onError: (err) => logger.warn({ err }, 'failed to renew the log claim; retrying'),
  })
  undo.defer(stop)
  return undo.move()
}
