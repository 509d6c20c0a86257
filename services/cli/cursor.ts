import type pg from 'pg'

/** Yields batches of up to `size` rows, all from one snapshot. Holds a single batch in memory. */
export async function* readByCursor<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  { text, values }: { text: string; values: unknown[] },
  size: number,
): AsyncGenerator<Row[]> {
  const tx = await pool.connect()
  try {
    // Plan for reading all rows; by default Postgres optimizes cursors for the first rows.
    await tx.query('begin read only; set local cursor_tuple_fraction = 1')
    await tx.query(`declare batches no scroll cursor for ${text}`, values)
    for (;;) {
      const { rows } = await tx.query<Row>(`fetch ${size} from batches`)
      if (rows.length === 0) return
      yield rows
    }
  } finally {
    // Destroy the connection, which also ends the transaction.
    tx.release(true)
  }
}
