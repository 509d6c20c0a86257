import type { Db } from '../postgres/pool.ts'

/**
 * Names the run of the database that `db` asks: another text after a restart, a crash, a failover to a replica or a
 * restore, each of which may have brought back an earlier state. When it started says so, except where Postgres came
 * back by itself after one of its processes was killed, which keeps that time; then its statistics begin anew. An
 * operator who resets them only makes it look like a restart.
 */
export async function databaseIdentity(db: Db): Promise<string> {
  const { rows } = await db.query<{ identity: string }>({
    name: 'database-identity',
    text: `select extract(epoch from pg_postmaster_start_time()) || '/'
             || coalesce(extract(epoch from pg_stat_get_bgwriter_stat_reset_time())::text, '') as identity`,
  })
  const [row] = rows
  if (!row) throw new Error('the database does not say when it started')
  return row.identity
}
