import type pg from 'pg'
import type { EventLog, Position, Topic, TopicSpec } from '../log/port.ts'
import { type Migrations, runMigrations } from '../postgres/migrations.ts'
import { type Db, transaction } from '../postgres/pool.ts'

const addedColumns = [
  'damage text',
  'marks jsonb',
  'installation_id uuid not null default gen_random_uuid()',
]

// What was read from one log means nothing in another: offsets of the first would skip records of the second.
const boundLogMigrations: Migrations = {
  name: 'bound-log',
  create: `create table tidegate.bound_log (
    only_one boolean primary key default true check (only_one),
    identity text not null,
    bound_at timestamptz not null default now(),
    ${addedColumns.join()}
  )`,
  changes: [
    `alter table tidegate.bound_log ${addedColumns.map((column) => `add column ${column}`).join()}`,
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
  await moveMarks(pool, log)
  await pool.query('update tidegate.bound_log set damage = null where damage is not null')
}

function refuseOther(identity: string, bound: string | undefined): void {
  if (bound === identity) return
  throw new WrongLog(
    `The database holds what was read from another log: it was ${bound}, and the settings lead to ${identity}. ` +
      'Set KAFKA_BROKERS and DATABASE_URL as they were. If all records were moved at their offsets, run ' +
      '`tidegate migrate --adopt-log` (docs/operate/kafka.md, Another log).',
  )
}

/** For those who only read the log: throws WrongLog where the database is bound to another one. */
export async function refuseOtherLog(db: Db, log: Pick<EventLog, 'identity'>): Promise<void> {
  const bound = await boundLog(db)
  if (bound !== undefined) refuseOther(await log.identity(), bound)
}

async function bindFirst(db: Db, identity: string): Promise<string | undefined> {
  await db.query('insert into tidegate.bound_log (identity) values ($1) on conflict do nothing', [
    identity,
  ])
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
      'Set it as it was (docs/operate/kafka.md, Another log).',
  )
}

async function boundIn(db: Db): Promise<string | undefined> {
  const { rows } = await db.query<{ identity: string }>('select identity from tidegate.bound_log')
  return rows[0]?.identity
}

export async function rebindLog(db: Db, identity: string): Promise<void> {
  // Moved records may have other times, so the marks don't apply to them.
  await db.query(
    `insert into tidegate.bound_log (identity) values ($1)
     on conflict (only_one) do update set identity = excluded.identity, bound_at = now(), marks = null`,
    [identity],
  )
}

/** Throws WrongLog where a partition ends before what was read of it: records that are counted as read are gone. */
export async function refuseShorterLog(db: Db, log: Pick<EventLog, 'endPositions'>): Promise<void> {
  const read = await readPositions(db)
  const topics = [...new Set(read.map(({ topic }) => topic))]
  const ends: Position[] = []
  // Sequential, because each read of the embedded log takes a connection.
  for (const topic of topics) ends.push(...(await log.endPositions(topic)))
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
  'it was truncated, made anew or restored from an older copy (docs/operate/kafka.md, Another log).'

interface Marks {
  /** Epoch milliseconds. */
  time: number
  /** Each partition's first offset that was stored at that time or later. */
  offsets: Record<Topic, number[]>
}

/**
 * Checks the stored marks and stores new ones for the topics. A log that only grows and expires never moves a mark back;
 * a copy that lacks records does, even after it has outgrown them. Throws WrongLog then.
 */
export async function moveMarks(
  db: Db,
  log: Pick<EventLog, 'positionsSince'>,
  topics: Topic[] = [],
): Promise<void> {
  const marksAt = async (time: number, of: Topic[]): Promise<Marks> => {
    const positions = await Promise.all(of.map((topic) => log.positionsSince(topic, time)))
    const offsets = of.map((topic, i) => [topic, positions[i]?.map(({ offset }) => offset)])
    return { time, offsets: Object.fromEntries(offsets) }
  }
  // Read before the check, so that what the old marks prove holds for the new ones, too.
  const next = await marksAt(Date.now(), topics)
  const { rows } = await db.query<{ marks: Marks | null }>('select marks from tidegate.bound_log')
  const { time = 0, offsets = {} } = rows[0]?.marks ?? {}
  const { offsets: now } = await marksAt(time, Object.keys(offsets))
  for (const [topic, marks] of Object.entries(offsets))
    for (const [partition, mark] of marks.entries()) {
      const first = now[topic]?.[partition] ?? 0
      if (first < mark)
        throw new WrongLog(
          `The log had ${mark} records of ${topic}/${partition} by ${new Date(time).toISOString()}, and now has ` +
            `${first} from before then: ${replaced}`,
        )
    }
  if (topics.length > 0)
    await db.query('update tidegate.bound_log set marks = $1 where damage is null', [next])
}

/**
 * Throws WrongLog where the log has lost records, and records it as damage: every process of the database then throws,
 * until a start finds the log healthy.
 */
export async function verifyLog(
  db: Db,
  log: Pick<EventLog, 'endPositions' | 'positionsSince'>,
  topics: Topic[],
): Promise<void> {
  const { rows } = await db.query<{ damage: string | null }>(
    'select damage from tidegate.bound_log',
  )
  if (rows[0]?.damage) throw new WrongLog(rows[0].damage)
  try {
    await refuseShorterLog(db, log)
    await moveMarks(db, log, topics)
  } catch (error) {
    if (error instanceof WrongLog)
      await db.query('update tidegate.bound_log set damage = coalesce(damage, $1)', [error.message])
    throw error
  }
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
