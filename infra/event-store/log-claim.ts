import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { z } from 'zod'
import type { EventLog, TopicSpec } from '../log/port.ts'
import { readTopicToEnd } from '../log/read-topic.ts'
import { WrongLog } from './bound-log.ts'

const topic = 'tidegate.claim.v1'
export const claimTopicSpec: TopicSpec = { topic, partitions: 1, retentionMs: 60 * 60 * 1000 }

const liveMs = 60_000
// A running installation renews its claim within this time: when it is 15 seconds old, and somebody looks every 10.
const silentMs = 30_000
const recordsRead = 500

const claimSchema = z.object({
  installation_id: z.string(),
  /** Cluster and database of Postgres: a dump that was restored in another place has another one. */
  database_id: z.string(),
  database: z.string(),
  host: z.string(),
  take_over: z.boolean(),
})

type ClaimData = z.infer<typeof claimSchema>
export type LogClaim = ClaimData & { offset: number; time: number }

/** Returns the claim that holds: the first one, its renewals, and what took it over on purpose. */
export function holderOf(claims: LogClaim[]): LogClaim | undefined {
  return claims.reduce<LogClaim | undefined>((holder, claim) => {
    const isHeld = holder !== undefined && holder.database_id !== claim.database_id && !claim.take_over
    return isHeld ? holder : claim
  }, undefined)
}

/** The log is in use with another database. */
export class LogClaimed extends WrongLog {
  constructor({ host, database, database_id, installation_id, time }: LogClaim) {
    super(
      `The log belongs to another database: "${database}" (${database_id}, installation ${installation_id}), claimed by ` +
        `server ${host} at ${new Date(time).toISOString()}. Set KAFKA_TOPIC_PREFIX to a prefix of your own. To move the ` +
        'log to this database, run `tidegate restore` or `tidegate serve --take-over-log` ' +
        '(docs/operate/operations.md, One database per Kafka prefix).',
    )
  }
}

interface ClaimOptions {
  pool: pg.Pool
  log: EventLog
  host: string
  takeOver: boolean
}

/**
 * Claims the log for this database, and returns what renews the claim. Both throw LogClaimed while another database
 * holds it. A holder that looks dead gets the time to renew, because clocks differ and an outage may have kept it from that.
 */
export async function claimLog({ pool, log, host, takeOver }: ClaimOptions): Promise<() => Promise<void>> {
  const { rows } = await pool.query<Pick<ClaimData, 'installation_id' | 'database_id' | 'database'>>(
    `select installation_id, current_database() as database,
       (select system_identifier from pg_control_system()) || '/' ||
         (select oid from pg_database where datname = current_database()) as database_id
     from tidegate.bound_log`,
  )
  const [identity] = rows
  if (!identity) throw new Error('the database is not bound to a log')
  const endOf = async () => (await log.endPositions(topic))[0]?.offset ?? 0

  async function findForeignClaim(): Promise<LogClaim | undefined> {
    const from = Math.max(0, (await endOf()) - recordsRead)
    const claims: LogClaim[] = []
    await readTopicToEnd({
      ...{ log, topic, from: () => from },
      handle(batches) {
        for (const { value, offset, timestamp: time } of batches.flatMap(({ records }) => records))
          claims.push({ ...claimSchema.parse(JSON.parse(value.toString())), offset, time })
      },
    })
    const holder = holderOf(claims)
    return holder?.database_id === identity?.database_id ? undefined : holder
  }

  async function requireHeld(): Promise<void> {
    const foreign = await findForeignClaim()
    if (foreign) throw new LogClaimed(foreign)
  }

  const saveNext = (next: number) => pool.query('update tidegate.bound_log set claim_next = $1', [next])

  async function append(end: number, take_over = false): Promise<void> {
    const value = Buffer.from(JSON.stringify({ ...identity, host, take_over }))
    const [at] = await log.append([{ topic, key: 'claim', value, headers: {} }])
    await pool.query('update tidegate.bound_log set claimed_at = now()')
    // Another claim came in between.
    if (at?.offset !== end) await requireHeld()
    await saveNext((at?.offset ?? end) + 1)
  }

  async function renew(): Promise<void> {
    const { rows } = await pool.query<{ next: number; is_due: boolean }>(
      `select claim_next::float8 as next, coalesce(claimed_at < now() - interval '15 seconds', true) as is_due
       from tidegate.bound_log`,
    )
    const end = await endOf()
    // Records before `next` were read, or appended by a process of this database.
    if (end !== rows[0]?.next) {
      await requireHeld()
      await saveNext(end)
    }
    if (rows[0]?.is_due) await append(end)
  }

  const foreign = takeOver ? undefined : await findForeignClaim()
  if (foreign) {
    if (Date.now() - foreign.time < liveMs) throw new LogClaimed(foreign)
    await delay(silentMs)
    const later = await findForeignClaim()
    if (later && later.offset !== foreign.offset) throw new LogClaimed(later)
  }
  if (foreign || takeOver) await append(await endOf(), true)
  else await renew()
  return renew
}
