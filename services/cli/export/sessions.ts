import type pg from 'pg'
import { selectFacts } from '../../../projections/sessions/facts-schema.ts'
import { openedSessionFacts } from '../../../projections/sessions/session-facts.ts'
import type { ExportSelection, RowSink } from './selection.ts'

// A smaller row group is slower to read.
const together = 10_000

/** Writes the rows as they are at one moment, in the order of their ids. */
export async function writeSessions(
  pool: pg.Pool,
  selection: ExportSelection,
  { add, onProgress }: RowSink,
): Promise<void> {
  const { since, until, organizationId, environment, isOpen } = selection
  const chosen = `from ${isOpen ? `(${openedSessionFacts('read')})` : 'read.session_facts'} f
    where evaluated_at_ms >= $1 and evaluated_at_ms < $2
      and ($3::text is null or organization_id = $3) and ($4::text is null or environment = $4)`
  const values = [since, until, organizationId, environment]
  const tx = await pool.connect()
  try {
    await tx.query(
      'begin isolation level repeatable read read only; set local cursor_tuple_fraction = 1',
    )
    const { rows: counts } = await tx.query<{ total: number }>(
      `select count(*)::float8 as total ${chosen}`,
      values,
    )
    await tx.query(
      `declare chosen no scroll cursor for select ${selectFacts('f')} ${chosen} order by session_id`,
      values,
    )
    for (let done = 0; ; ) {
      const { rows } = await tx.query<Record<string, unknown>>(`fetch ${together} from chosen`)
      if (rows.length === 0) return
      for (const row of rows)
        if (typeof row.repeats === 'string') row.repeats = JSON.parse(row.repeats)
      await add(rows)
      done += rows.length
      onProgress(done, counts[0]?.total ?? done)
    }
  } finally {
    tx.release(true)
  }
}
