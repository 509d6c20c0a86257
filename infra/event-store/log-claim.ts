import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { z } from 'zod'
import type { EventLog, TopicSpec } from '../log/port.ts'
import { readTopicToEnd } from '../log/read-topic.ts'
import type { Db } from '../postgres/pool.ts'

const topic = 'tidegate.claim.v1'
export const claimTopicSpec: TopicSpec = { topic, partitions: 1, retentionMs: 60 * 60 * 1000 }

// All processes of an installation share one claim: the one that finds it due renews it.
const renewAfter = '15 seconds'
const liveMs = 60_000
// A running installation renews its claim within this time.
const silentMs = 30_000
const recordsRead = 500

const claimSchema = z.object({
  installation_id: z.string(),
  /** Cluster and database of Postgres: a copy of the database in another place has another one. */
  database_id: z.string(),
  database: z.string(),
  host: z.string(),
  take_over: z.boolean(),
})

type ClaimData = z.infer<typeof claimSchema>

export interface Claim extends ClaimData {
  offset: number
  time: number
}

/** Returns the claim that holds: the first one, its renewals, and what took it over on purpose. */
export function holderOf(claims: Claim[]): Claim | undefined {
  return claims.reduce<Claim | undefined>((holder, claim) => {
    const isHeld = holder !== undefined && holder.database_id !== claim.database_id && !claim.take_over
    return isHeld ? holder : claim
  }, undefined)
}

/** The log is in use with another database. */
export class LogClaimed extends Error {
  constructor({ host, database, database_id, installation_id, time }: Claim) {
    super(
      `The log belongs to another database: "${database}" (${database_id}, installation ${installation_id}), claimed by ` +
        `server ${host} at ${new Date(time).toISOString()}. Set KAFKA_TOPIC_PREFIX to a prefix of your own. To move the ` +
        'log to this database, run `tidegate restore` or `tidegate serve --take-over-log` ' +
        '(docs/operate/operations.md, One database per Kafka prefix).',
    )
  }
}

export interface LogClaim {
  /** Throws LogClaimed where another database has taken the log over. */
  renew(): Promise<void>
}

interface ClaimOptions {
  pool: pg.Pool
  log: EventLog
  host: string
  takeOver: boolean
}

/**
 * Claims the log for this database. Throws LogClaimed while another one holds it. A holder that looks dead gets the time
 * to renew its claim, because clocks differ and an outage may have kept it from that.
 */
export async function claimLog({ pool, log, host, takeOver }: ClaimOptions): Promise<LogClaim> {
  const identity = await readIdentity(pool)

  // Undefined where this database holds the claim, or nobody does.
  async function findForeignClaim(): Promise<Claim | undefined> {
    const holder = holderOf(await readClaims(log))
    return holder?.database_id === identity.database_id ? undefined : holder
  }

  async function requireHeld(): Promise<void> {
    const foreign = await findForeignClaim()
    if (foreign) throw new LogClaimed(foreign)
  }

  async function append(end: number, take_over: boolean): Promise<void> {
    const value = Buffer.from(JSON.stringify({ ...identity, host, take_over }))
    const [at] = await log.append([{ topic, key: identity.database_id, value, headers: {} }])
    // Another claim came first.
    if (at?.offset !== end) await requireHeld()
    await saveNext(pool, identity, (at?.offset ?? 0) + 1)
  }

  async function renew(): Promise<void> {
    const next = await readNext(pool, identity)
    const end = await endOf(log)
    if (end !== next) {
      await requireHeld()
      await saveNext(pool, identity, end)
    }
    if (await takeTurn(pool)) await append(end, false)
  }

  const isOurs = (await readNext(pool, identity)) === (await endOf(log))
  const silent = takeOver || isOurs ? undefined : await findForeignClaim()
  if (silent) {
    if (Date.now() - silent.time < liveMs) throw new LogClaimed(silent)
    await delay(silentMs)
    const foreign = await findForeignClaim()
    if (foreign && foreign.offset !== silent.offset) throw new LogClaimed(foreign)
  }
  if (silent || takeOver) await append(await endOf(log), true)
  else await renew()
  return { renew }
}

const endOf = async (log: EventLog): Promise<number> => (await log.endPositions(topic))[0]?.offset ?? 0

async function readClaims(log: EventLog): Promise<Claim[]> {
  const from = Math.max(0, (await endOf(log)) - recordsRead)
  const claims: Claim[] = []
  await readTopicToEnd({
    ...{ log, topic, from: () => from },
    handle(batches) {
      for (const { value, offset, timestamp: time } of batches.flatMap(({ records }) => records))
        claims.push({ ...claimSchema.parse(JSON.parse(value.toString())), offset, time })
    },
  })
  return claims
}

type Identity = Pick<ClaimData, 'installation_id' | 'database_id' | 'database'>

async function readIdentity(db: Db): Promise<Identity> {
  const { rows } = await db.query<Identity>(
    `select installation_id, current_database() as database,
       (select system_identifier from pg_control_system()) || '/' ||
         (select oid from pg_database where datname = current_database()) as database_id
     from tidegate.bound_log`,
  )
  const [identity] = rows
  if (!identity) throw new Error('the database is not bound to a log')
  return identity
}

// Where the claim topic went on when this database was last seen to hold the claim. A copy of the database has not seen it.
async function readNext(db: Db, { database_id }: Identity): Promise<number> {
  const { rows } = await db.query<{ next: number }>(
    'select claim_next::float8 as next from tidegate.bound_log where claimed_by = $1',
    [database_id],
  )
  return rows[0]?.next ?? 0
}

async function saveNext(db: Db, { database_id }: Identity, next: number): Promise<void> {
  await db.query('update tidegate.bound_log set claim_next = $1, claimed_by = $2', [next, database_id])
}

// Returns true for one process when the claim is due.
async function takeTurn(db: Db): Promise<boolean> {
  const { rowCount } = await db.query(
    `update tidegate.bound_log set claimed_at = now()
     where claimed_at is null or claimed_at < now() - $1::interval`,
    [renewAfter],
  )
  return rowCount === 1
}
