import { createBatcher } from '../../flow/batcher.ts'
import { valueBytes } from '../partition.ts'
import type { LogRecord, Position, Topic } from '../port.ts'
import { createKafkaClient } from './client.ts'
import { type KafkaLogOptions, maxBatchBytes } from './log.ts'
import { openProducer, sendBatch } from './producer.ts'

export type KafkaImport = Awaited<ReturnType<typeof openKafkaImport>>

/** Opens a writer that copies another log's records to existing topics. It must be their only writer. */
export async function openKafkaImport(options: KafkaLogOptions) {
  const { topicPrefix: prefix = '', compressionType = 'none' } = options
  const kafka = createKafkaClient(options)
  await using undo = new AsyncDisposableStack()
  const admin = kafka.admin()
  await admin.connect()
  undo.defer(() => admin.disconnect())
  const { producer, end } = await openProducer(kafka)
  undo.defer(end)
  const appends = createBatcher({
    runBatch: (records: LogRecord[]) => {
      const toSend = records.map(({ timestamp: storedAt, ...record }) => ({ ...record, storedAt }))
      return sendBatch(producer, toSend, { prefix, compressionType })
    },
    maxItems: 5000,
    maxBytes: maxBatchBytes,
    bytesOf: valueBytes,
  })
  const opened = undo.move()
  return {
    /** Appends the records with their original partitions and times. */
    append: appends.run,

    /** Deletes all records of the topic. Its offsets don't restart. */
    async deleteRecords(topic: Topic): Promise<void> {
      const partitions = (await admin.fetchTopicOffsets(prefix + topic))
        .filter(({ low, high }) => low !== high)
        .map(({ partition, high: offset }) => ({ partition, offset }))
      await admin.deleteTopicRecords({ topic: prefix + topic, partitions })
    },

    /** Commits offsets for a group without active consumers. */
    async setGroupOffsets(group: string, next: Position[]): Promise<void> {
      for (const [topic, positions] of Map.groupBy(next, (position) => position.topic)) {
        const partitions = positions.map(({ partition, offset }) => ({
          partition,
          offset: String(offset),
        }))
        await admin.setOffsets({ groupId: prefix + group, topic: prefix + topic, partitions })
      }
    },

    close: () => opened.disposeAsync(),
  }
}
