import { randomBytes } from 'node:crypto'
import { eventTopics } from '../../schemas/events.ts'
import { type EventLog, type LogConsumer, type Position, placeName } from '../log/port.ts'
import type { Logger } from '../telemetry.ts'
import type { EventCodec, RecordedEvent } from './codec.ts'

/** Records that cannot be read, and that an operator decided to leave out (`tidegate log skip`). */
export interface Skips {
  /** Asked only of a record that stops its partition. */
  has(position: Position): Promise<boolean>
  close(): Promise<void>
}

interface SkipsOptions {
  log: EventLog
  codec: EventCodec
  logger: Logger
}

const topic = eventTopics.RecordSkipped
const nameOf = ({ offset, ...place }: Position) => `${placeName(place)}/${offset}`

/** Reads the facts when it is first asked, and follows them from then on: nearly always there are none to read. */
export function createSkips(options: SkipsOptions): Skips {
  const skipped = new Set<string>()
  let following: Promise<LogConsumer> | undefined

  function note(event: RecordedEvent): void {
    if (event.type !== 'RecordSkipped') return
    const { skipped_topic, skipped_partition: partition, skipped_offset: offset } = event.data
    skipped.add(nameOf({ topic: skipped_topic, partition, offset }))
  }

  return {
    async has(position) {
      following ??= follow(options, note).catch((error) => {
        following = undefined
        throw error
      })
      await following
      return skipped.has(nameOf(position))
    },
    async close() {
      await (await following?.catch(() => undefined))?.stop()
    },
  }
}

// Resolves when all that there was at the call is noted.
async function follow(
  { log, codec, logger }: SkipsOptions,
  note: (event: RecordedEvent) => void,
): Promise<LogConsumer> {
  const ends = await log.endPositions(topic)
  const unread = new Map(ends.filter(({ offset }) => offset > 0).map((end) => [placeName(end), end.offset]))
  const { promise: atEnd, resolve } = Promise.withResolvers<void>()
  if (unread.size === 0) resolve()
  const consumer = await log.consume({
    group: `tidegate.skips.${randomBytes(6).toString('hex')}`,
    topics: [topic],
    startOffset: async () => 0,
    onError: (err) => logger.warn({ err }, 'skipped records were not read; they will be read again'),
    async handle(batches) {
      for (const { records, ...place } of batches) {
        for (const record of records) note(codec.fromRecord(record))
        if ((records.at(-1)?.offset ?? 0) + 1 >= (unread.get(placeName(place)) ?? 0))
          unread.delete(placeName(place))
      }
      if (unread.size === 0) resolve()
      return undefined
    },
  })
  await atEnd
  return consumer
}
