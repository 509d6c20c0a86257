import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import type { Batch, LogRecord } from '../../infra/log/port.ts'
import { eventTopics } from '../../schemas/events.ts'
import type { Core } from '../server/dependencies.ts'
import { withCore } from './operator/operate.ts'

interface EventsOptions {
  topic: string
  type?: string
  key?: string
  follow: boolean
}

export function defineEvents(command: Command): void {
  const topics = [...new Set(Object.values(eventTopics))]
  command
    .requiredOption('--topic <name>', `one of ${topics.join(', ')}`)
    .option('--type <name>', 'only events of this type, for example SessionScored')
    .option('--key <key>', 'only events about this session, organization, ...')
    .option('--follow', 'go on with new events instead of ending at the end', false)
    .action(async (options: EventsOptions) => {
      if (!topics.some((topic) => topic === options.topic))
        throw new Error(`--topic: one of ${topics.join(', ')}`)
      await withCore((core) => printEvents(core, options))
    })
}

async function printEvents(core: Core, { topic, type, key, follow }: EventsOptions): Promise<void> {
  const ends = follow ? [] : await core.log.endPositions(topic)
  const unread = new Set(ends.filter((end) => end.offset > 0).map((end) => end.partition))
  if (!follow && unread.size === 0) return
  const { promise: atEnd, resolve, reject } = Promise.withResolvers<void>()
  const wanted = (record: LogRecord, event: RecordedEvent) =>
    (!type || event.type === type) && (!key || record.key === key)
  function print({ partition, records }: Batch): void {
    for (const record of records) {
      const event = core.codec.fromRecord(record)
      if (wanted(record, event)) console.log(JSON.stringify(printable(event)))
    }
    const end = ends.find((position) => position.partition === partition)
    if (end && (records.at(-1)?.offset ?? 0) + 1 >= end.offset) unread.delete(partition)
  }
  const consumer = await core.log.consume({
    group: `tidegate-events-${randomBytes(6).toString('hex')}`,
    topics: [topic],
    startOffset: async () => 0,
    onError: reject,
    async handle(batches) {
      batches.forEach(print)
      if (!follow && unread.size === 0) resolve()
      return undefined
    },
  })
  await atEnd.finally(() => consumer.stop())
}

function printable({ type, meta, position, data }: RecordedEvent) {
  const members = Object.entries(data).map(([name, value]) => [
    name,
    Buffer.isBuffer(value) ? value.toString('base64') : value,
  ])
  return { type, meta, position, data: Object.fromEntries(members) }
}
