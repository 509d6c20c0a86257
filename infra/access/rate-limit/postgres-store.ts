import type pg from 'pg'
import type { Migrations } from '../../postgres/migrations.ts'
import type { BucketStore } from './limiter.ts'

/**
 * Unlogged: after a crash of Postgres the buckets are full, as they would be a minute later anyway. A fillfactor of 50
 * leaves room for HOT updates, which touch no index. `parts` and `at` (epoch milliseconds) describe the bucket after
 * its last charge; `capacity` is the limit in parts.
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

// A new bucket starts full, so `excluded.capacity - excluded.parts` is the charge. Every process locks rows in the
// order of their ids, which prevents deadlocks.
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

/** Creates a bucket store in Postgres that charges all reports of a call in one statement. */
export function createPostgresBucketStore(pool: pg.Pool): BucketStore {
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
        if (left === undefined)
          throw new Error(`rate-limit bucket ${bucketId} was written but not returned`)
        return left
      })
    },
  }
}
