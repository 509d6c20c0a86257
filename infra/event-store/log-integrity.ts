import { type EventLog, type Mark, type Position, placeName, type Topic } from '../log/port.ts'
import type { Migrations } from '../postgres/migrations.ts'
import type { Db } from '../postgres/pool.ts'

export const logMarkMigrations: Migrations = {
  name: 'log-marks',
  create: `create table tidegate.log_marks (
    topic text not null,
    partition integer not null,
    next_offset bigint not null,
    time bigint not null,
    primary key (topic, partition)
  )`,
}

/** The database holds what was read from another log, or from one that has since lost records. */
export class WrongLog extends Error {
  /** Shows the loss to a later start, also when new records have filled the gap. */
  readonly evidence: Mark | undefined

  constructor(message: string, evidence?: Mark) {
    super(message)
    this.evidence = evidence
  }
}

const replaced =
  'it was truncated, made anew or restored from an older copy (docs/operate/operations.md, Another log).'

/** Throws WrongLog where records that were read are gone, or where later ones are in their place. */
export async function refuseReplacedLog(
  db: Db,
  log: Pick<EventLog, 'endPositions' | 'positionsSince'>,
): Promise<void> {
  await refuseShorterLog(db, log)
  await refuseMovedMarks(db, log)
}

/** Throws WrongLog where a partition ends before what was read of it: records that are counted as read are gone. */
export async function refuseShorterLog(db: Db, log: Pick<EventLog, 'endPositions'>): Promise<void> {
  const read = await readPositions(db)
  const topics = [...new Set(read.map(({ topic }) => topic))]
  const time = Date.now()
  refuseShorter(read, { ends: await readEnds(log, topics), time })
}

export const readEnds = async (log: Pick<EventLog, 'endPositions'>, topics: Topic[]): Promise<Position[]> =>
  (await Promise.all(topics.map((topic) => log.endPositions(topic)))).flat()

/** Throws WrongLog where a partition ended, at that time, before an offset that it had reached. */
export function refuseShorter(reached: Position[], { ends, time }: { ends: Position[]; time: number }): void {
  const offsets = new Map(ends.map((end) => [placeName(end), end.offset]))
  for (const position of reached) {
    const end = offsets.get(placeName(position)) ?? 0
    if (end < position.offset)
      throw new WrongLog(
        `The log ends at offset ${end} of ${placeName(position)}, and it was read up to ${position.offset}: ${replaced}`,
        { ...position, time },
      )
  }
}

/** Throws WrongLog where a record that was stored later stands below a mark. Records that expired move no mark. */
export async function refuseMovedMarks(db: Db, log: Pick<EventLog, 'positionsSince'>): Promise<void> {
  const { rows: marks } = await db.query<Mark>(
    'select topic, partition, next_offset::float8 as "offset", time::float8 from tidegate.log_marks',
  )
  for (const [, ofMoment] of Map.groupBy(marks, ({ topic, time }) => `${topic} ${time}`)) {
    const { topic = '', time = 0 } = ofMoment[0] ?? {}
    const since = new Map((await log.positionsSince(topic, time)).map((at) => [at.partition, at.offset]))
    for (const mark of ofMoment) {
      const moved = since.get(mark.partition) ?? 0
      if (moved < mark.offset)
        throw new WrongLog(
          `Offset ${moved} of ${placeName(mark)} was stored after ${new Date(time).toISOString()}, when the log ` +
            `had ${mark.offset} already: ${replaced}`,
        )
    }
  }
}

/**
 * Returns a mark of each partition. The log only grows and expires, so the first record since a moment never moves back,
 * unless a copy that lacks records took the log's place and others were appended.
 */
export async function readMarks(
  log: Pick<EventLog, 'positionsSince'>,
  { topics, time }: { topics: Topic[]; time: number },
): Promise<Mark[]> {
  const positions = await Promise.all(topics.map((topic) => log.positionsSince(topic, time)))
  return positions.flat().map((position) => ({ ...position, time }))
}

/** Stores newer marks. Once damage was recorded, none are: they would describe the damaged log. */
export async function saveMarks(db: Db, marks: Mark[]): Promise<void> {
  await db.query(
    `insert into tidegate.log_marks (topic, partition, next_offset, time)
     select * from unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[])
     where not exists (select from tidegate.bound_log where damage is not null)
     on conflict (topic, partition) do update set next_offset = excluded.next_offset, time = excluded.time
     where excluded.time > log_marks.time`,
    [
      marks.map(({ topic }) => topic),
      marks.map(({ partition }) => partition),
      marks.map(({ offset }) => offset),
      marks.map(({ time }) => time),
    ],
  )
}

/** Tells every process of the database, until a start finds the log healthy. */
export async function recordDamage(db: Db, { message, evidence }: WrongLog): Promise<void> {
  if (evidence) await saveMarks(db, [evidence])
  await db.query('update tidegate.bound_log set damage = coalesce(damage, $1)', [message])
}

/** Throws WrongLog where a process of this database has recorded damage. */
export async function refuseDamage(db: Db): Promise<void> {
  const { rows } = await db.query<{ damage: string | null }>('select damage from tidegate.bound_log')
  if (rows[0]?.damage) throw new WrongLog(rows[0].damage)
}

/** Forgets damage that was recorded: the log is healthy. */
export async function clearDamage(db: Db): Promise<void> {
  await db.query('update tidegate.bound_log set damage = null where damage is not null')
}

/** Where scoring and the read models go on. */
export async function readPositions(db: Db): Promise<Position[]> {
  const { rows } = await db.query<Position>(
    `select topic, partition, max(next_offset)::float8 as "offset" from (
       select topic, partition, next_offset from tidegate.projection_offsets
         join tidegate.projection_builds using (projection, build) where status = 'live'
       union all select topic, partition, next_offset from scoring.offsets
     ) as positions group by topic, partition`,
  )
  return rows
}
