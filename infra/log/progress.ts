import { type Position, partitionName } from './port.ts'

interface Progress {
  stored: Position[]
  starts: Position[]
  ends: Position[]
}

/**
 * Returns a consumer's progress in each partition of `ends`. `first` is the first record that still exists, `next` the
 * next one to read: the stored offset or `first`, whichever is later.
 */
export function progressOf({ stored, starts, ends }: Progress) {
  const [storedOffsets, firstOffsets] = [offsetsOf(stored), offsetsOf(starts)]
  return ends.map(({ offset: end, ...topicPartition }) => {
    const first = firstOffsets.get(partitionName(topicPartition)) ?? 0
    const next = Math.max(first, storedOffsets.get(partitionName(topicPartition)) ?? 0)
    return { topicPartition, first, next, end }
  })
}

const offsetsOf = (positions: Position[]) =>
  new Map(positions.map((at) => [partitionName(at), at.offset]))
