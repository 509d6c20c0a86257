import type pg from 'pg'

/** Reads `size` rows at a time by a cursor, so that all are of one moment and never all in memory. */
export async function* readByCursor<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  { text, values }: { text: string; values: unknown[] },
  size: number,
): AsyncGenerator<Row[]> {
  const tx = await pool.connect()
  try {
    // Planned for all rows. Without the setting it would be for the first ones, which an index gives sooner.
    await tx.query('begin read only; set local cursor_tuple_fraction = 1')
    await tx.query(`declare batches no scroll cursor for ${text}`, values)
    for (;;) {
      const { rows } = await tx.query<Row>(`fetch ${size} from batches`)
      if (rows.length === 0) return
      yield rows
    }
  } finally {
    // Whatever went wrong in it, it is not used again.
    tx.release(true)
  }
}
