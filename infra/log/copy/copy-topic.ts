import type { Batch, LogRecord, Position } from '../port.ts'
import { readTopicToEnd } from '../read-topic.ts'
import { type CopyPlace, marked, original } from './copied.ts'
import { createOffsetMap, type OffsetMap } from './offset-map.ts'

/** Returns the ends of the source, and where its records went. */
export async function copyTopic(
  options: CopyPlace & {
    change?: ((record: LogRecord) => LogRecord) | undefined
    onCopied?: (records: number) => void
  },
): Promise<{ ends: Position[]; offsets: OffsetMap }> {
  const { source, target, topic, expires, change = (record) => record, onCopied } = options
  const offsets = await offsetsSoFar(options)

  async function carry(batches: Batch[]): Promise<void> {
    if (!expires) for (const batch of batches) refuseGap(batch, offsets)
    const records = batches.flatMap((batch) => batch.records)
    const copies = records.map(change)
    const positions = await target.carry(expires ? copies.map(marked) : copies)
    positions.forEach((position, i) => {
      const record = records[i]
      if (record) offsets.add(record, position)
    })
    if (!expires) refuseOtherOffsets(records, positions)
    onCopied?.(records.length)
  }

  const from = (partition: number) => offsets.nextInSource(partition)
  return { ends: await readTopicToEnd({ log: source, topic, from, handle: carry }), offsets }
}

async function offsetsSoFar({ target, topic, expires }: CopyPlace): Promise<OffsetMap> {
  const offsets = createOffsetMap(await target.endPositions(topic), { isEqual: !expires })
  const handle = (batches: Batch[]) => {
    for (const { records } of batches)
      for (const record of records) offsets.add(original(record), record)
  }
  if (expires) await readTopicToEnd({ log: target, topic, handle })
  return offsets
}

// Read models name the offset of a decision, and that up to which they have read. So no record may get another one.
function refuseGap({ topic, partition, records }: Batch, offsets: OffsetMap): void {
  const next = offsets.nextInSource(partition)
  const at = records.findIndex(({ offset }, i) => offset !== next + i)
  if (at < 0) return
  throw new Error(
    `${topic}/${partition} lacks offset ${next + at} in the embedded log, so what follows would move (docs/operate/operations.md).`,
  )
}

function refuseOtherOffsets(records: Position[], copied: Position[]): void {
  const [moved] = records.filter(({ offset }, i) => offset !== copied[i]?.offset)
  if (!moved) return
  throw new Error(
    `${moved.topic}/${moved.partition} offset ${moved.offset} got another offset: somebody else writes to the topic.`,
  )
}
