import type { KeyedRecord, NewRecord } from './port.ts'

export type PartitionedRecord<R extends KeyedRecord = NewRecord> = R & {
  partition: number
  /** The time at which another log stored it, epoch milliseconds. Absent = now. */
  storedAt?: number
}

export const valueBytes = ({ value }: KeyedRecord): number => value?.length ?? 0

export const assignPartition = <R extends KeyedRecord>(
  record: R,
  partitions = 1,
): PartitionedRecord<R> => ({
  ...record,
  partition: partitionOfKey(record.key, partitions),
})

/**
 * Returns the partition of a key, the same as Kafka's default partitioner: murmur2 of the UTF-8 bytes, sign bit
 * cleared, modulo the number of partitions. So both logs and other producers agree.
 */
export function partitionOfKey(key: string, partitions: number): number {
  return (murmur2(Buffer.from(key)) & 0x7fffffff) % partitions
}

const multiplier = 0x5bd1e995

/** Returns Kafka's murmur2 hash, a signed 32-bit number (org.apache.kafka.common.utils.Utils.murmur2). */
export function murmur2(data: Buffer): number {
  const words = data.length >> 2
  let hash = 0x9747b28c ^ data.length
  for (let i = 0; i < words; i++) {
    let word = Math.imul(data.readInt32LE(i * 4), multiplier)
    word = Math.imul(word ^ (word >>> 24), multiplier)
    hash = Math.imul(hash, multiplier) ^ word
  }
  if (data.length % 4 > 0)
    hash = Math.imul(hash ^ data.readUIntLE(words * 4, data.length % 4), multiplier)
  hash = Math.imul(hash ^ (hash >>> 13), multiplier)
  return hash ^ (hash >>> 15)
}
