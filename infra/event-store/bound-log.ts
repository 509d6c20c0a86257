import type pg from 'pg'
import type { EventLog, Position, Topic, TopicSpec } from '../log/port.ts'
import { type Migrations, runMigrations } from '../postgres/migrations.ts'
import { type Db, transaction } from '../postgres/pool.ts'

const addedColumns = [
  'damage text',
  'marks jsonb',
  'installation_id uuid not null default gen_random_uuid()',
]

// The log that this database was filled from. Its stored offsets mean nothing in another log.
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

/** Thrown if the database was filled from another log, or the log has since lost records. */
export class WrongLog extends Error {}

interface BindOptions {
  pool: pg.Pool
  log: Pick<EventLog, 'identity' | 'endPositions' | 'positionsSince' | 'ensureTopics'>
  topics: TopicSpec[]
  /** Rebinds the database to this log. All records must have been moved to it with their offsets. */
  adopt?: boolean
}

/**
 * Binds the database to the log on first use, and creates missing topics. Throws WrongLog if the database is bound to
 * another log, before reading or writing that one.
 */
export async function bindLog({ pool, log, topics, adopt = false }: BindOptions): Promise<void> {
  await transaction(pool, (tx) => runMigrations(tx, [boundLogMigrations]))
  const identity = await log.identity()
  refuseMismatch(identity, adopt ? identity : await bindIfUnbound(pool, identity))
  await log.ensureTopics(topics)
  await refuseShorterLog(pool, log)
  if (adopt) await rebindLog(pool, identity)
  await checkAndMoveWatermarks(pool, log)
  await pool.query('update tidegate.bound_log set damage = null where damage is not null')
}

function refuseMismatch(identity: string, bound: string | undefined): void {
  if (bound === identity) return
  throw new WrongLog(
    `The database belongs to another log: it was filled from ${bound}, and the settings point to ${identity}. ` +
      'Restore the previous KAFKA_BROKERS and DATABASE_URL. If you moved all records and kept their offsets, run ' +
      '`tidegate migrate --adopt-log` (docs/operate/kafka.md, Another log).',
  )
}

/** Throws WrongLog if the database is bound to another log. Unlike `bindLog`, it never binds an unbound one. */
export async function refuseOtherLog(db: Db, log: Pick<EventLog, 'identity'>): Promise<void> {
  const bound = await boundLogIdentity(db)
  if (bound !== undefined) refuseMismatch(await log.identity(), bound)
}

async function bindIfUnbound(db: Db, identity: string): Promise<string | undefined> {
  await db.query('insert into tidegate.bound_log (identity) values ($1) on conflict do nothing', [
    identity,
  ])
  return readIdentity(db)
}

/** Returns the identity of the bound log; undefined if none is bound, or the table does not exist yet. */
export async function boundLogIdentity(db: Db): Promise<string | undefined> {
  const { rows } = await db.query<{ has_table: boolean }>(
    `select to_regclass('tidegate.bound_log') is not null as has_table`,
  )
  return rows[0]?.has_table ? readIdentity(db) : undefined
}

/**
 * Throws WrongLog if the database is bound to Kafka. Without KAFKA_BROKERS, call it before the embedded log is created:
 * a database user who may not create tables would otherwise get an error about those instead.
 */
export async function refuseBoundToKafka(db: Db): Promise<void> {
  const bound = await boundLogIdentity(db)
  if (!bound?.startsWith('Kafka')) return
  throw new WrongLog(
    `The database belongs to a Kafka log: it was filled from ${bound}, and KAFKA_BROKERS is not set. ` +
      'Restore the previous setting (docs/operate/kafka.md, Another log).',
  )
}

async function readIdentity(db: Db): Promise<string | undefined> {
  const { rows } = await db.query<{ identity: string }>('select identity from tidegate.bound_log')
  return rows[0]?.identity
}

export async function rebindLog(db: Db, identity: string): Promise<void> {
  // Moved records may have other times, so the watermarks don't apply to them.
  await db.query(
    `insert into tidegate.bound_log (identity) values ($1)
     on conflict (only_one) do update set identity = excluded.identity, bound_at = now(), marks = null`,
    [identity],
  )
}

/** Throws WrongLog if a partition ends before a stored offset: records that were already read are gone. */
export async function refuseShorterLog(db: Db, log: Pick<EventLog, 'endPositions'>): Promise<void> {
  const read = await readPositions(db)
  const topics = [...new Set(read.map(({ topic }) => topic))]
  const ends: Position[] = []
  // Sequential, because each read of the embedded log takes a connection.
  for (const topic of topics) ends.push(...(await log.endPositions(topic)))
  for (const { topic, partition, offset } of read) {
    const end = ends.find((at) => at.topic === topic && at.partition === partition)?.offset ?? 0
    if (end < offset)
      throw new WrongLog(
        `The log ends at offset ${end} of ${topic}/${partition}, but was already read up to ${offset}: ` +
          likelyCause,
      )
  }
}

const likelyCause =
  'it was truncated, recreated or restored from an older copy (docs/operate/kafka.md, Another log).'

/** Watermarks of the log at a time. */
interface Watermarks {
  /** Epoch milliseconds. */
  time: number
  /** Each partition's first offset that was stored at that time or later. */
  offsets: Record<Topic, number[]>
}

/**
 * Checks the stored watermarks and stores new ones for the topics. Throws WrongLog if a watermark went back: that can't
 * happen in a log that only grows and expires, but does in a copy that lacks records, even once it has grown past them.
 */
export async function checkAndMoveWatermarks(
  db: Db,
  log: Pick<EventLog, 'positionsSince'>,
  topics: Topic[] = [],
): Promise<void> {
  const watermarksAt = async (time: number, names: Topic[]): Promise<Watermarks> => {
    const positions = await Promise.all(names.map((topic) => log.positionsSince(topic, time)))
    const offsets = names.map((topic, i) => [topic, positions[i]?.map(({ offset }) => offset)])
    return { time, offsets: Object.fromEntries(offsets) }
  }
  // Read first: if the check below passes, these come from a healthy log.
  const next = await watermarksAt(Date.now(), topics)
  const { rows } = await db.query<{ marks: Watermarks | null }>(
    'select marks from tidegate.bound_log',
  )
  const { time = 0, offsets = {} } = rows[0]?.marks ?? {}
  const { offsets: now } = await watermarksAt(time, Object.keys(offsets))
  for (const [topic, marks] of Object.entries(offsets))
    for (const [partition, mark] of marks.entries()) {
      const first = now[topic]?.[partition] ?? 0
      if (first < mark)
        throw new WrongLog(
          `The log had ${mark} records in ${topic}/${partition} at ${new Date(time).toISOString()}, and now has ` +
            `${first} from before that time: ${likelyCause}`,
        )
    }
  if (topics.length > 0)
    await db.query('update tidegate.bound_log set marks = $1 where damage is null', [next])
}

/**
 * Throws WrongLog if the log has lost records, and stores that as damage: every process that uses the database then
 * throws, until a start finds the log healthy.
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
    await checkAndMoveWatermarks(db, log, topics)
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
