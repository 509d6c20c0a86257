import type pg from 'pg'
import type { EventLog, TopicSpec } from '../log/port.ts'
import { type Migrations, runMigrations } from '../postgres/migrations.ts'
import { type Db, transaction } from '../postgres/pool.ts'
import {
  clearDamage,
  logMarkMigrations,
  refuseReplacedLog,
  refuseShorterLog,
  WrongLog,
} from './log-integrity.ts'

// What was read from one log means nothing in another: offsets of the first would skip records of the second.
const boundLogMigrations: Migrations = {
  name: 'bound-log',
  create: `create table tidegate.bound_log (
    only_one boolean primary key default true check (only_one),
    identity text not null,
    bound_at timestamptz not null default now(),
    damage text,
    installation_id uuid not null default gen_random_uuid(),
    claim_next bigint,
    claimed_by text,
    claimed_at timestamptz
  )`,
  changes: [
    `alter table tidegate.bound_log add column damage text,
       add column installation_id uuid not null default gen_random_uuid(),
       add column claim_next bigint, add column claimed_by text, add column claimed_at timestamptz`,
  ],
}

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
  await transaction(pool, (tx) => runMigrations(tx, [boundLogMigrations, logMarkMigrations]))
  const identity = await log.identity()
  refuseOther(identity, adopt ? identity : await bindFirst(pool, identity))
  await log.ensureTopics(topics)
  if (adopt) {
    await refuseShorterLog(pool, log)
    await rebindLog(pool, identity)
  } else await refuseReplacedLog(pool, log)
  await clearDamage(pool)
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
