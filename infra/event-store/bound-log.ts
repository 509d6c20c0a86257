import type pg from 'pg'
import { type EventLog, type Position, placeName, type Topic, type TopicSpec } from '../log/port.ts'
import { type Migrations, runMigrations } from '../postgres/migrations.ts'
import { type Db, transaction } from '../postgres/pool.ts'

const addedColumns = [
  'damage text',
  'installation_id uuid not null default gen_random_uuid()',
  'claim_next bigint not null default 0',
  'claimed_at timestamptz',
]

const marksDdl = `create table tidegate.log_marks (
  topic text not null,
  partition integer not null,
  next_offset bigint not null,
  time bigint not null,
  primary key (topic, partition)
)`

// What was read from one log means nothing in another: offsets of the first would skip records of the second.
const boundLogMigrations: Migrations = {
  name: 'bound-log',
  create: `create table tidegate.bound_log (
    only_one boolean primary key default true check (only_one),
    identity text not null,
    bound_at timestamptz not null default now(),
    ${addedColumns.join()}
  ); ${marksDdl}`,
  changes: [
    `alter table tidegate.bound_log ${addedColumns.map((column) => `add column ${column}`).join()}; ${marksDdl}`,
  ],
}

/** The database holds what was read from another log, or from one that has since lost records. */
export class WrongLog extends Error {}

interface BindOptions {
  pool: pg.Pool
  log: Pick<EventLog, 'identity' | 'endPositions' | 'positionsSince' | 'ensureTopics'>
  topics: TopicSpec[]
  /** Binds the database to this log from now on, as after a move of all its records at their offsets. */
  adopt?: boolean
}

/**
 * Makes the topics that are missing. The first log that is used with a database is its log: throws WrongLog for any
 * other, before anything is read from it or written to it.
 */
export async function bindLog({ pool, log, topics, adopt = false }: BindOptions): Promise<void> {
  await transaction(pool, (tx) => runMigrations(tx, [boundLogMigrations]))
  const identity = await log.identity()
  refuseOther(identity, adopt ? identity : await bindFirst(pool, identity))
  await log.ensureTopics(topics)
  await refuseShorterLog(pool, log)
  if (adopt) await rebindLog(pool, identity)
  await refuseMovedMarks(pool, log)
  await pool.query('update tidegate.bound_log set damage = null where damage is not null')
}

function refuseOther(identity: string, bound: string | undefined): void {
  if (bound === identity) return
  throw new WrongLog(
    `The database holds what was read from another log: it was ${bound}, and the settings lead to ${identity}. ` +
      'Set KAFKA_BROKERS and DATABASE_URL as they were. If all records were moved at their offsets, run ' +
      '`tidegate migrate --adopt-log` (docs/operate/operations.md, Another log).',
  )
}

/** For those who only read the log: throws WrongLog where the database is bound to another one. */
export async function refuseOtherLog(db: Db, log: Pick<EventLog, 'identity'>): Promise<void> {
  const bound = await boundLog(db)
  if (bound !== undefined) refuseOther(await log.identity(), bound)
}

async function bindFirst(db: Db, identity: string): Promise<string | undefined> {
  await db.query('insert into tidegate.bound_log (identity) values ($1) on conflict do nothing', [identity])
  return boundIn(db)
}

export async function boundLog(db: Db): Promise<string | undefined> {
  const found = await db.query<{ there: boolean }>(
    `select to_regclass('tidegate.bound_log') is not null as there`,
  )
  return found.rows[0]?.there ? boundIn(db) : undefined
}

/**
 * For a start without KAFKA_BROKERS, before the embedded log is made: throws WrongLog where the database is bound to
 * Kafka. A user who may make no tables would otherwise be told of those that the embedded log lacks.
 */
export async function refuseBoundToKafka(db: Db): Promise<void> {
  const bound = await boundLog(db)
  if (!bound?.startsWith('Kafka')) return
  throw new WrongLog(
    `The database is bound to Kafka: what it holds was read from ${bound}, and KAFKA_BROKERS is not set. ` +
      'Set it as it was (docs/operate/operations.md, Another log).',
  )
}

async function boundIn(db: Db): Promise<string | undefined> {
  const { rows } = await db.query<{ identity: string }>('select identity from tidegate.bound_log')
  return rows[0]?.identity
}

export async function rebindLog(db: Db, identity: string): Promise<void> {
  // Moved records may have other times.
  await db.query('delete from tidegate.log_marks')
  await db.query(
    `insert into tidegate.bound_log (identity) values ($1)
     on conflict (only_one) do update set identity = excluded.identity, bound_at = now()`,
    [identity],
  )
}

/** Throws WrongLog where a partition ends before what was read of it: records that are counted as read are gone. */
export async function refuseShorterLog(db: Db, log: Pick<EventLog, 'endPositions'>): Promise<void> {
  const read = await readPositions(db)
  const topics = [...new Set(read.map(({ topic }) => topic))]
  const ends = (await Promise.all(topics.map((topic) => log.endPositions(topic)))).flat()
  for (const { topic, partition, offset } of read) {
    const end = ends.find((one) => one.topic === topic && one.partition === partition)?.offset ?? 0
    if (end < offset)
      throw new WrongLog(
        `The log ends at offset ${end} of ${topic}/${partition}, and it was read up to ${offset}: ` +
          replaced,
      )
  }
}

const replaced =
  'it was truncated, made anew or restored from an older copy (docs/operate/operations.md, Another log).'

interface Mark extends Position {
  /** No record below the offset was stored at this time (epoch milliseconds) or later. */
  time: number
}

/**
 * Stores a mark of each partition: the first record since now. A log that only grows and expires never moves one back.
 * A copy that lacks records does, also once it has outgrown them. Throws WrongLog like `refuseMovedMarks`.
 */
export async function moveMarks(
  db: Db,
  log: Pick<EventLog, 'positionsSince'>,
  topics: Topic[],
): Promise<void> {
  const time = Date.now()
  const marks = (await Promise.all(topics.map((topic) => log.positionsSince(topic, time)))).flat()
  // Only now: what the older marks prove holds for the new ones, too.
  await refuseMovedMarks(db, log)
  await db.query(
    `insert into tidegate.log_marks (topic, partition, next_offset, time)
     select *, $4 from unnest($1::text[], $2::int[], $3::bigint[])
     where not exists (select from tidegate.bound_log where damage is not null)
     on conflict (topic, partition) do update set next_offset = excluded.next_offset, time = excluded.time
     where excluded.time > log_marks.time`,
    [marks.map(({ topic }) => topic), marks.map((at) => at.partition), marks.map((at) => at.offset), time],
  )
}

/** Throws WrongLog where a record that was stored later stands below a mark. */
async function refuseMovedMarks(db: Db, log: Pick<EventLog, 'positionsSince'>): Promise<void> {
  const { rows: marks } = await db.query<Mark>(
    'select topic, partition, next_offset::float8 as "offset", time::float8 from tidegate.log_marks',
  )
  for (const [, ofMoment] of Map.groupBy(marks, ({ topic, time }) => `${topic} ${time}`)) {
    const { topic = '', time = 0 } = ofMoment[0] ?? {}
    const since = new Map((await log.positionsSince(topic, time)).map((at) => [at.partition, at.offset]))
    for (const mark of ofMoment) {
      const first = since.get(mark.partition) ?? 0
      if (first < mark.offset)
        throw new WrongLog(
          `The log had ${mark.offset} records of ${placeName(mark)} by ${new Date(time).toISOString()}, and now has ` +
            `${first} from before then: ${replaced}`,
        )
    }
  }
}

/** Throws WrongLog where a process of this database has recorded damage. */
export async function refuseDamage(db: Db): Promise<void> {
  const { rows } = await db.query<{ damage: string | null }>('select damage from tidegate.bound_log')
  if (rows[0]?.damage) throw new WrongLog(rows[0].damage)
}

/** Tells every process of the database, until a start finds the log healthy. */
export async function recordDamage(db: Db, reason: string): Promise<void> {
  await db.query('update tidegate.bound_log set damage = coalesce(damage, $1)', [reason])
}

async function readPositions(db: Db): Promise<Position[]> {
  const { rows } = await db.query<Position>(
    `select topic, partition, max(next_offset)::float8 as "offset" from (
       select topic, partition, next_offset from tidegate.projection_offsets
         join tidegate.projection_builds using (projection, build) where status = 'live'
       union all select topic, partition, next_offset from scoring.offsets
     ) as positions group by topic, partition`,
  )
  return rows
}
