import { ensureTables } from '../postgres/ensure-tables.ts'
import type { Db, Tx } from '../postgres/pool.ts'

/** Neither a caller's key nor an answer can be read from a row, and no id or secret follows from its seed alone. */
const ddl = `
create table if not exists tidegate.idempotency_keys (
  id bytea primary key,
  master_key_id text not null,
  request_mac bytea not null,
  seed bytea not null,
  created_at bigint not null,
  expires_at bigint not null,
  lease bytea not null,
  locked_until bigint not null,
  in_doubt boolean not null default false,
  answer bytea
);
create index if not exists idempotency_keys_expiry on tidegate.idempotency_keys (expires_at);
`

/** Creates what is missing; safe to run from several processes at once. */
export function createIdempotencyTables(tx: Tx): Promise<void> {
  return ensureTables(tx, { name: 'idempotency', table: 'tidegate.idempotency_keys', ddl })
}

const purgeAtOnce = 1000

/** Deletes rows whose 24 hours are over, at most 1000 at a time; returns how many. `now` in epoch milliseconds. */
export async function purgeIdempotencyKeys(db: Db, now: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from tidegate.idempotency_keys where id in (
       select id from tidegate.idempotency_keys where expires_at <= $1 and locked_until <= $1
       order by expires_at limit $2 for update skip locked)`,
    [now, purgeAtOnce],
  )
  return rowCount ?? 0
}
