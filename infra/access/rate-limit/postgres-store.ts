import type pg from 'pg'
import type { Migrations } from '../../postgres/migrations.ts'
import type { BucketStore } from './limiter.ts'

/**
 * Unlogged: after a crash of Postgres the buckets are full again, which is what they are a minute later anyway.
 * Half of a page stays free, so that an update finds room next to the old version and touches no index. `parts` and `at`
 * (epoch milliseconds) are as after the last charge, `capacity` is the limit in parts.
 */
export const rateLimitMigrations: Migrations = {
  name: 'rate-limits',
  create: `create unlogged table tidegate.rate_limits (
    bucket text primary key,
    parts bigint not null,
    at bigint not null,
    capacity bigint not null
  ) with (fillfactor = 50)`,
}

export const rateLimitPoolOptions = {
  max: 4,
  applicationName: 'tidegate rate limits',
  queryTimeoutMs: 2500,
  statementTimeoutMs: 2000,
}

const now = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'

// A new bucket is full, so what an `excluded` row lacks of its capacity is the charge. The order of the rows is the same
// in every process, so that two statements never wait for each other's locks.
const charge = `
insert into tidegate.rate_limits as b (bucket, parts, at, capacity)
select bucket, "limit" * 60000 - charge, ${now}, "limit" * 60000
from unnest($1::text[], $2::bigint[], $3::bigint[]) as report (bucket, "limit", charge)
order by bucket
on conflict (bucket) do update set capacity = excluded.capacity, (parts, at) = (
  select least(
      excluded.capacity,
      greatest(-excluded.capacity, b.parts) + excluded.capacity / 60000 * greatest(0, now - b.at)
    ) - (excluded.capacity - excluded.parts), now
  from (select ${now} as now) clock
)
returning bucket, parts::float8`

/** Buckets as rows; all reports at once are one statement. */
export function createPostgresStore(pool: pg.Pool): BucketStore {
  return {
    async charge(reports) {
      const { rows } = await pool.query<{ bucket: string; parts: number }>({
        name: 'rate-limit-charge',
        text: charge,
        values: [
          reports.map(({ bucketId }) => bucketId),
          reports.map(({ limit }) => limit),
          reports.map((report) => report.charge),
        ],
      })
      const parts = new Map(rows.map((row) => [row.bucket, row.parts]))
      return reports.map(({ bucketId }) => {
        const left = parts.get(bucketId)
        if (left === undefined) throw new Error(`bucket ${bucketId} was written but not returned`)
        return left
      })
    },
  }
}
