import type { Tx } from '../../postgres/pool.ts'
import { type Position, placeName } from '../port.ts'

/**
 * Ends the log for good, as its records are elsewhere up to `ends`: whoever still appends to it is refused, so nothing is
 * acknowledged that nobody reads. Throws where it has gone on. Its records stay.
 */
export async function retireLog(tx: Tx, ends: Position[], schema = 'tidegate_log'): Promise<void> {
  // An append that waits for this finds no partition.
  await tx.query(`set local lock_timeout = '5s'; lock table ${schema}.partitions in exclusive mode`)
  const { rows } = await tx.query<Position>(
    `select topic, partition, next_offset::float8 as "offset" from ${schema}.partitions`,
  )
  const now = new Map(rows.map((row) => [placeName(row), row.offset]))
  if (ends.some((end) => now.get(placeName(end)) !== end.offset))
    throw new Error(
      'Something was appended to the embedded log meanwhile. Stop every server, and run this again: it goes on where it ended.',
    )
  await tx.query(`delete from ${schema}.partitions`)
}
