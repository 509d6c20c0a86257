import type { EventLog, Position } from '../log/port.ts'
import type { Db } from '../postgres/pool.ts'
import { buildOffsets, liveBuild } from './builds.ts'
import type { Projection } from './projection.ts'

export interface Lag {
  projection: string
  topic: string
  partition: number
  /** Records appended and not yet applied. */
  records: number
}

export interface LagOptions {
  projections: Projection[]
  log: Pick<EventLog, 'endPositions'>
  pool: Db
}

/** How far every projection's live build is behind the log, whichever process applies it. */
export async function projectionLags({ projections, log, pool }: LagOptions): Promise<Lag[]> {
  const lags = await Promise.all(
    projections.map(async ({ name, topics }) => {
      const build = await liveBuild(pool, name)
      const applied = build ? await buildOffsets(pool, build) : []
      const ends = (await Promise.all(topics.map((topic) => log.endPositions(topic)))).flat()
      return ends.map((end) => lagOf(name, end, applied))
    }),
  )
  return lags.flat()
}

function lagOf(projection: string, { topic, partition, offset }: Position, applied: Position[]): Lag {
  const at = applied.find((position) => position.topic === topic && position.partition === partition)
  return { projection, topic, partition, records: Math.max(0, offset - (at?.offset ?? 0)) }
}
