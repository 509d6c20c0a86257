import type { Tx } from '../../postgres/pool.ts'
import { type Position, partitionName } from '../port.ts'

/**
 * Retires the embedded log after its records up to `ends` were moved. Later appends fail, so no acknowledged record is
 * left behind. The old records are kept. Throws if records were appended during the move.
 */
export async function retireLog(tx: Tx, ends: Position[], schema = 'tidegate_log'): Promise<void> {
  // An append that waits for this lock fails, because its partition is gone afterwards.
  await tx.query(`set local lock_timeout = '5s'; lock table ${schema}.partitions in exclusive mode`)
  const { rows } = await tx.query<Position>(
    `select topic, partition, next_offset::float8 as "offset" from ${schema}.partitions`,
  )
  const currentEnds = new Map(rows.map((row) => [partitionName(row), row.offset]))
  if (ends.some((end) => currentEnds.get(partitionName(end)) !== end.offset))
    throw new Error(
      'Records were appended to the embedded log during the move. Stop every server and run the command again: it resumes.',
    )
  await tx.query(`delete from ${schema}.partitions`)
}
