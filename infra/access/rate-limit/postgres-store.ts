import type pg from 'pg'
import type { Random } from '../../ids.ts'
import type { Migrations } from '../../postgres/migrations.ts'
import type { Balance } from './bucket.ts'
import type { BucketStore } from './limiter.ts'

/**
 * Unlogged: after a crash of Postgres the buckets are full again, which is what they are a minute later anyway.
 * Half of a page stays free, so that an update finds room next to the old version and touches no index. `parts` and `at`
 * (epoch milliseconds) are as after the last charge. `reservations` has `[parts, until]` of each process.
 */
export const rateLimitMigrations: Migrations = {
  name: 'rate-limits',
  create: `create unlogged table tidegate.rate_limits (
    bucket text primary key,
    parts bigint not null,
    at bigint not null,
    reservations jsonb not null
  ) with (fillfactor = 50)`,
}

export const rateLimitPoolOptions = {
  max: 4,
  applicationName: 'tidegate rate limits',
  queryTimeoutMs: 2500,
  statementTimeoutMs: 2000,
}

const now = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'

// Refills the bucket, charges it and reserves units. $2 limit, $3 charge, $4 process, $5 returned, $6 retained, $7 whether
// to reserve. What is reserved is still of the bucket, so it refills to the limit less that.
//
// All processes together reserve at most a hundredth of the limit, each an equal share of it. What one holds and does
// not use is what others are refused too early. A process that does not report for 3 seconds counts as dead.
const charge = `
insert into tidegate.rate_limits as b (bucket, parts, at, reservations)
values ($1, $2::bigint * 60000 - $3::bigint, ${now}, '{}')
on conflict (bucket) do update set (parts, at, reservations) = (
  select rest - granted, now, others || jsonb_build_object($4::text, jsonb_build_array($6 + granted, now + 3000))
  from (select ${now} as now) clock,
  lateral (
    select coalesce(jsonb_object_agg(key, value) filter (where key <> $4), '{}') as others,
      count(*) filter (where key <> $4) + 1 as processes,
      coalesce(sum((value->>0)::bigint), 0)::bigint as reserved,
      coalesce(sum((value->>0)::bigint) filter (where key <> $4), 0)::bigint as by_others
    from jsonb_each(b.reservations) where (value->>1)::bigint between now and now + 3000
  ) living,
  lateral (
    select least($2 * 60000 - reserved, greatest($2 * -60000 - reserved, b.parts) + $2 * greatest(0, now - b.at))
      + $5 - $3 as rest
  ) charged,
  lateral (
    select case when $7::boolean then greatest(0, least(
      $2 / 100 / processes * 60000 - $6, $2 / 100 * 60000 - by_others - $6, rest / 60000 * 60000
    )) else 0 end as granted
  ) reservation
)
returning parts::float8, coalesce((reservations->$4->>0)::bigint - $6::bigint, 0)::float8 as granted`

/** Buckets as rows; a report is one statement. */
export function createPostgresStore(pool: pg.Pool, { random }: { random: Random }): BucketStore {
  const node = random(8).toString('hex')
  return {
    async charge({ bucketId, limit, charge: parts, returned, retained, reserves }) {
      const { rows } = await pool.query<Balance>({
        name: 'rate-limit-charge',
        text: charge,
        values: [bucketId, limit, parts, node, returned, retained, reserves],
      })
      if (!rows[0]) throw new Error('a bucket that was just written is not there')
      return rows[0]
    },
  }
}
