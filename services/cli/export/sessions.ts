import type pg from 'pg'
import { selectFacts } from '../../../projections/sessions/facts-schema.ts'
import { unrestrictedSessionFacts } from '../../../projections/sessions/session-facts.ts'
import { readByCursor } from '../cursor.ts'
import type { ExportSelection, RowSink } from './selection.ts'

// Smaller Parquet row groups are slower to read.
const rowsPerGroup = 10_000

/** Writes the rows of a single snapshot, ordered by session id. */
export async function writeSessions(
  pool: pg.Pool,
  selection: ExportSelection,
  { add, onProgress }: RowSink,
): Promise<void> {
  const { since, until, organizationId, environment, decrypts } = selection
  const source = `from ${decrypts ? `(${unrestrictedSessionFacts('read')})` : 'read.session_facts'} f
    where evaluated_at_ms >= $1 and evaluated_at_ms < $2
      and ($3::text is null or organization_id = $3) and ($4::text is null or environment = $4)`
  const values = [since, until, organizationId, environment]
  const { rows: counts } = await pool.query<{ total: number }>(
    `select count(*)::float8 as total ${source}`,
    values,
  )
  const text = `select ${selectFacts('f')} ${source} order by session_id`
  let done = 0
  for await (const rows of readByCursor<Record<string, unknown>>(
    pool,
    { text, values },
    rowsPerGroup,
  )) {
    for (const row of rows)
      if (typeof row.repeats === 'string') row.repeats = JSON.parse(row.repeats)
    await add(rows)
    done += rows.length
    onProgress(done, counts[0]?.total ?? done)
  }
}
