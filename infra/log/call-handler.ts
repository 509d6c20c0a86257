import { type Batch, type ConsumeOptions, partitionName, type ResumePosition } from './port.ts'

/** Calls `handle`. Returns where to resume partitions, by name: at their first record if `handle` rejects. */
export async function callHandler(
  { handle, onError }: ConsumeOptions,
  batches: Batch[],
): Promise<Map<string, ResumePosition>> {
  const positions = await handle(batches).catch((error) =>
    batches.map(({ topic, partition, records }): ResumePosition => {
      const offset = records[0]?.offset ?? 0
      onError?.(error, { topic, partition, offset })
      return { topic, partition, offset, failed: true }
    }),
  )
  return new Map((positions ?? []).map((position) => [partitionName(position), position]))
}
