import type { Command } from 'commander'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { decodeRecords } from '../../infra/event-store/event-batch.ts'
import { hasPersonalFields, withoutPersonal } from '../../infra/event-store/seal.ts'
import type { Batch, EventLog, LogRecord } from '../../infra/log/port.ts'
import { readTopic } from '../../infra/log/read-topic.ts'
import { errorMessage } from '../../infra/thrown.ts'
import { eventTopics } from '../../schemas/events.ts'
import { eventType, idArgument, requireTypeOnTopic, since, wholeNumber } from './arguments.ts'

interface EventsOptions {
  topic: string
  type?: string
  key?: string
  organization?: string
  partition?: number
  offset: number
  /** Epoch milliseconds. */
  since?: number
  limit?: number
  follow: boolean
  open?: boolean
}

export function defineEvents(command: Command): void {
  const topics = [...new Set(Object.values(eventTopics))]
  command
    .requiredOption('--topic <name>', `one of ${topics.join(', ')}`)
    .option('--type <name>', 'only events of this type, for example SessionScored', eventType)
    .option('--key <key>', 'only events with this record key: a session id, organization id, ...')
    .option('--organization <id>', 'only events of this organization (org_...)', idArgument('org'))
    .option('--partition <n>', 'only this partition', wholeNumber)
    .option('--offset <n>', 'first offset to read in each partition', wholeNumber, 0)
    .option(
      '--since <time>',
      'only events recorded since: 7d, 24h, 2026-11-23 or 2026-11-23T12:00:00Z',
      since,
    )
    .option('--limit <n>', 'stop after this many events', wholeNumber)
    .option('--open', 'decrypt personal data (needs the master keys); erased data is marked', false)
    .option('--follow', 'wait for new events instead of stopping at the end of the log', false)
    .action(async (options: EventsOptions) => {
      if (!topics.some((topic) => topic === options.topic))
        throw new Error(`--topic must be one of ${topics.join(', ')}, got "${options.topic}"`)
      requireTypeOnTopic(options)
      const { withStores } = await import('./operator/core.ts')
      await withStores((stores) => printEvents(stores, options), {
        decrypts: options.open === true,
      })
    })
}

/** Prints the selected events as JSON lines, oldest first within a partition. */
export async function printEvents(
  { log, codec }: { log: EventLog; codec: EventCodec },
  options: EventsOptions,
): Promise<void> {
  const { topic, partition, offset, limit = Number.POSITIVE_INFINITY, follow } = options
  if (limit === 0) return
  const { length } = await log.endPositions(topic)
  if (partition !== undefined && partition >= length)
    throw new Error(`--partition must be 0–${length - 1}, got ${partition}`)
  const { promise: finished, resolve } = Promise.withResolvers<void>()
  // Stops when the reader of a pipe, such as `head`, has exited.
  process.stdout.on('error', () => resolve())
  let remaining = limit
  function print({ records }: Batch): void {
    for (const record of records) {
      const line =
        remaining > 0 && isSelected(record, options)
          ? lineOf(record, { codec, ...options })
          : undefined
      if (!line) continue
      console.log(JSON.stringify(line))
      remaining -= 1
    }
  }
  const reading = await readTopic({
    log,
    topic,
    from: () => offset,
    stopsAtEnd: !follow,
    isIncluded: (position) => partition === undefined || position.partition === partition,
    async handle(batches) {
      // Loads the events' data keys, which `lineOf` needs.
      if (options.open)
        for (const { records } of batches) await decodeRecords({ codec, skips: skipsAll }, records)
      batches.forEach(print)
      if (remaining === 0) resolve()
    },
  })
  // `reachedEnd` rejects when reading fails, also with --follow.
  const done = follow ? reading.reachedEnd.then(() => finished) : reading.reachedEnd
  await Promise.race([finished, done]).finally(() => reading.stop())
}

// Makes decodeRecords continue past unreadable records, which `lineOf` prints.
const skipsAll = { has: async () => true }

function isSelected(
  record: LogRecord,
  { key, since = 0, offset, organization }: EventsOptions,
): boolean {
  const matchesOrganization = !organization || record.headers.organization_id === organization
  return (
    (!key || record.key === key) &&
    matchesOrganization &&
    record.timestamp >= since &&
    record.offset >= offset
  )
}

// Also returns unreadable records, because this command is used to find the record that blocks a partition.
function lineOf(
  record: LogRecord,
  { codec, type, open = false }: { codec: EventCodec } & Pick<EventsOptions, 'type' | 'open'>,
) {
  try {
    const event = codec.fromRecord(record)
    return !type || event.type === type ? readableEvent(event, open) : undefined
  } catch (error) {
    if (type) return undefined
    const { topic, partition, offset, value } = record
    return {
      unreadable: errorMessage(error),
      position: { topic, partition, offset },
      value: value.toString('base64'),
    }
  }
}

/** Returns the event as JSON. `open` is true if the caller loaded the data keys. */
export function readableEvent(
  { type, meta, position, data, cause, unreadable }: RecordedEvent,
  open: boolean,
) {
  const readable =
    unreadable !== undefined && hasPersonalFields(type) ? withoutPersonal(type, data) : data
  const members = Object.entries({ ...readable, ...cause })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, Buffer.isBuffer(value) ? value.toString('base64') : value])
  // Personal fields are null if the key was not loaded (closed) or has been deleted (erased).
  const sealed = unreadable === undefined ? {} : { sealed: open ? 'erased' : 'closed' }
  return { type, meta, position, ...sealed, data: Object.fromEntries(members) }
}
