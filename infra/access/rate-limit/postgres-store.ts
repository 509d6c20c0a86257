import type pg from 'pg'
import { ensureTables } from '../../postgres/ensure-tables.ts'
import { type Tx, transaction } from '../../postgres/pool.ts'
import type { Logger } from '../../telemetry.ts'
import { type BucketStore, readBucket, type SharedBucket } from './shared-bucket.ts'

/**
 * Unlogged: after a crash of Postgres the buckets are full again, which is what they are a minute later anyway.
 * Half of a page stays free, so that an update finds room beside the old version and touches no index.
 */
const ddl = `
create unlogged table if not exists tidegate.rate_limit_buckets (
  bucket text primary key,
  state text not null
) with (fillfactor = 50);
`

export function createRateLimitTables(tx: Tx): Promise<void> {
  return ensureTables(tx, { name: 'rate-limits', table: 'tidegate.rate_limit_buckets', ddl })
}

/** For the pool of the store: a process that stops in the middle locks a bucket for no longer than this. */
export const rateLimitPoolOptions = {
  max: 4,
  applicationName: 'tidegate rate limits',
  queryTimeoutMs: 1000,
  statementTimeoutMs: 1000,
  idleInTransactionMs: 1000,
}

/**
 * Buckets as rows; a change is one short transaction that locks its row. A row that cannot be read is logged once: the
 * change replaces it by a new bucket.
 */
export function createPostgresStore(pool: pg.Pool, { logger }: { logger: Logger }): BucketStore {
  return {
    update: (bucketId, change) =>
      transaction(
        pool,
        async (tx) => {
          const { state, now } = await lockBucket(tx, bucketId)
          const bucket = readBucket(state)
          if (!bucket && state !== notYet)
            logger.warn({ bucket: bucketId }, 'rate limits: a shared bucket cannot be read, it begins anew')
          const { row, result } = change(bucket, Number(now))
          await save(tx, bucketId, row)
          return result
        },
        { syncCommit: false },
      ),
  }
}

interface Locked {
  state: string
  now: string
}

const notYet = ''

async function lockBucket(tx: Tx, bucketId: string): Promise<Locked> {
  return (await lockExisting(tx, bucketId)) ?? (await lockNew(tx, bucketId))
}

async function lockExisting(tx: Tx, bucketId: string): Promise<Locked | undefined> {
  const { rows } = await tx.query<Locked>({
    name: 'rate-limit-lock',
    text: `select state, floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now
           from tidegate.rate_limit_buckets where bucket = $1 for update`,
    values: [bucketId],
  })
  return rows[0]
}

/** Several processes may see a bucket for the first time at once: the others wait here for the first one's row. */
async function lockNew(tx: Tx, bucketId: string): Promise<Locked> {
  const { rows } = await tx.query<Locked>({
    name: 'rate-limit-lock-new',
    text: `insert into tidegate.rate_limit_buckets (bucket, state) values ($1, $2)
           on conflict (bucket) do update set state = rate_limit_buckets.state
           returning state, floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now`,
    values: [bucketId, notYet],
  })
  if (!rows[0]) throw new Error('a bucket that was just written is not there')
  return rows[0]
}

async function save(tx: Tx, bucketId: string, row: SharedBucket): Promise<void> {
  await tx.query({
    name: 'rate-limit-save',
    text: 'update tidegate.rate_limit_buckets set state = $2 where bucket = $1',
    values: [bucketId, JSON.stringify(row)],
  })
}
