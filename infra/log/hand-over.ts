import { type Batch, type ConsumeOptions, placeName, type ReadOn } from './port.ts'

/** Calls the handler; where each partition is read on, by its name. After an error that is where it began. */
export async function handOver(
  { handle, onError }: ConsumeOptions,
  batches: Batch[],
): Promise<Map<string, ReadOn>> {
  const answers = await handle(batches).catch((error) =>
    batches.map(({ topic, partition, records }): ReadOn => {
      const offset = records[0]?.offset ?? 0
      onError?.(error, { topic, partition, offset })
      return { topic, partition, offset, failed: true }
    }),
  )
  return new Map((answers ?? []).map((answer) => [placeName(answer), answer]))
}
