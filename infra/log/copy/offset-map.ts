import type { Place, Position } from '../port.ts'

// Records that follow each other without a gap in the source and in the copy.
interface Run {
  source: number
  target: number
  records: number
}

export type OffsetMap = ReturnType<typeof createOffsetMap>

/**
 * Where the records of one topic went. Topics whose records expire need it, because scoring's offsets and the decisions to
 * skip name their records. Without it a move to Kafka would score sessions under way twice or not at all. `ends` are those
 * of the copy; with `isEqual` all records up to there were copied at their own offsets.
 */
export function createOffsetMap(ends: Position[], { isEqual }: { isEqual: boolean }) {
  const equal = ends.map(({ partition, offset }): [number, Run[]] => [
    partition,
    offset > 0 ? [{ source: 0, target: 0, records: offset }] : [],
  ])
  const known = new Map<number, Run[]>(isEqual ? equal : [])
  const runsOf = ({ partition }: Pick<Place, 'partition'>) => known.get(partition) ?? []

  function ofNext(source: Position): number {
    const run = runsOf(source).find((one) => source.offset < one.source + one.records)
    if (run) return run.target + Math.max(0, source.offset - run.source)
    const last = runsOf(source).at(-1)
    if (last) return last.target + last.records
    return ends.find(({ partition }) => partition === source.partition)?.offset ?? 0
  }

  return {
    add(source: Position, target: Position): void {
      const runs = runsOf(source)
      const last = runs.at(-1)
      const at = last && { source: last.source + last.records, target: last.target + last.records }
      if (last && at?.source === source.offset && at.target === target.offset) last.records += 1
      else runs.push({ source: source.offset, target: target.offset, records: 1 })
      known.set(source.partition, runs)
    },
    nextInSource(partition: number): number {
      const last = runsOf({ partition }).at(-1)
      return last ? last.source + last.records : 0
    },
    ofRecord(source: Position): number | undefined {
      const { offset } = source
      const isCarried = runsOf(source).some(
        (run) => run.source <= offset && offset < run.source + run.records,
      )
      return isCarried ? ofNext(source) : undefined
    },
    /** Where a consumer of the copy goes on that would go on there in the source. */
    ofNext,
  }
}
