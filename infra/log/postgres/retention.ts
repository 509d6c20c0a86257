import type pg from 'pg'

/** Records deleted in one transaction, so that none is long. */
const chunk = 5000

/** Deletes records older than their topic's retention, oldest first. Safe to run in several processes at once. */
export async function deleteExpired(pool: pg.Pool, schema: string): Promise<number> {
  let total = 0
  for (;;) {
    const { rowCount } = await pool.query(
      `with old as (
         select r.topic, r.partition, r."offset" from ${schema}.topics t
         join ${schema}.partitions p using (topic)
         cross join lateral (
           select topic, partition, "offset", stored_at from ${schema}.records
           where topic = p.topic and partition = p.partition order by "offset" limit $1
         ) as r
         where t.retention_ms is not null
           and r.stored_at < extract(epoch from clock_timestamp()) * 1000 - t.retention_ms
       )
       delete from ${schema}.records r using old
       where r.topic = old.topic and r.partition = old.partition and r."offset" = old."offset"`,
      [chunk],
    )
    total += rowCount ?? 0
    if (!rowCount) return total
  }
}
