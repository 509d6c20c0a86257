import type pg from 'pg'
import { transaction } from '../../../../infra/postgres/pool.ts'

/**
 * Remembers the webhooks read model, how far it is, and the queue. What it returns brings them back. A database does so that crashed before its last commits were on the disk.
 */
export async function rememberReadModel(pool: pg.Pool): Promise<() => Promise<void>> {
  const { rows } = await pool.query<{ schema: string; name: string }>(
    `select t.table_schema as schema, t.table_name as name from information_schema.tables t
     join tidegate.projection_builds b on b.schema_name = t.table_schema
     where b.projection = 'webhooks' and b.status = 'live' and t.table_type = 'BASE TABLE'`,
  )
  for (const { schema, name } of rows)
    await pool.query(`create table public.then_${name} as select * from ${schema}.${name}`)
  await pool.query('create table public.queue_then as select * from tidegate.webhook_queue')
  await pool.query('create table public.offsets_then as select * from tidegate.projection_offsets')
  return () =>
    transaction(pool, async (tx) => {
      for (const { schema, name } of rows) {
        await tx.query(`delete from ${schema}.${name}`)
        await tx.query(`insert into ${schema}.${name} select * from public.then_${name}`)
      }
      await tx.query(`update tidegate.projection_offsets o set next_offset = t.next_offset
        from public.offsets_then t where o.projection = 'webhooks'
        and (o.projection, o.build, o.topic, o.partition) = (t.projection, t.build, t.topic, t.partition)`)
      await tx.query('delete from tidegate.webhook_queue')
      await tx.query('insert into tidegate.webhook_queue select * from public.queue_then')
    })
}
