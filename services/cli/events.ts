import type { Command } from 'commander'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { decodeRecords } from '../../infra/event-store/event-batch.ts'
import { isPersonal, withoutPersonal } from '../../infra/event-store/seal.ts'
import type { Batch, EventLog, LogRecord } from '../../infra/log/port.ts'
import { readTopic } from '../../infra/log/read-topic.ts'
import { errorMessage } from '../../infra/thrown.ts'
import { eventTopics } from '../../schemas/events.ts'
import { eventType, idOf, requireTypeOn, since, wholeNumber } from './arguments.ts'

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
    .option('--key <key>', 'only events about this session, organization, ...')
    .option('--organization <id>', 'only events of this organization (org_...)', idOf('org'))
    .option('--partition <n>', 'only this partition', wholeNumber)
    .option('--offset <n>', 'from this offset on, in each partition', wholeNumber, 0)
    .option(
      '--since <time>',
      'only what was recorded from this time on: 7d, 24h, 2026-11-23 or 2026-11-23T12:00:00Z',
      since,
    )
    .option('--limit <n>', 'end after so many events', wholeNumber)
    .option(
      '--open',
      'open what is encrypted, with the master keys; what was erased is marked',
      false,
    )
    .option('--follow', 'go on with new events instead of ending at the end', false)
    .action(async (options: EventsOptions) => {
      if (!topics.some((topic) => topic === options.topic))
        throw new Error(`--topic must be one of ${topics.join(', ')}, got "${options.topic}"`)
      requireTypeOn(options)
      const { withStores } = await import('./operator/core.ts')
      await withStores((stores) => printEvents(stores, options), {
        opensKeys: options.open === true,
      })
    })
}

/** Prints them as JSON lines, oldest first within a partition. */
export async function printEvents(
  { log, codec }: { log: EventLog; codec: EventCodec },
  options: EventsOptions,
): Promise<void> {
  const { topic, partition, offset, limit = Number.POSITIVE_INFINITY, follow } = options
  if (limit === 0) return
  const { length } = await log.endPositions(topic)
  if (partition !== undefined && partition >= length)
    throw new Error(`--partition must be 0–${length - 1}, got ${partition}`)
  const { promise: enough, resolve } = Promise.withResolvers<void>()
  // The reader of a pipe, as `head` is, has ended and needs no more.
  process.stdout.on('error', () => resolve())
  let left = limit
  function print({ records }: Batch): void {
    for (const record of records) {
      const line =
        left > 0 && isSelected(record, options) ? lineOf(record, { codec, ...options }) : undefined
      if (!line) continue
      console.log(JSON.stringify(line))
      left -= 1
    }
  }
  const reading = await readTopic({
    log,
    topic,
    from: () => offset,
    endsThere: !follow,
    isRead: (place) => partition === undefined || place.partition === partition,
    async handle(batches) {
      // This fetches the keys of the events. What cannot be read is printed as unreadable.
      if (options.open)
        for (const { records } of batches) await decodeRecords({ codec, skips: passAll }, records)
      batches.forEach(print)
      if (left === 0) resolve()
    },
  })
  // Rejects when reading fails, whether it follows or not.
  const done = follow ? reading.atEnd.then(() => enough) : reading.atEnd
  await Promise.race([enough, done]).finally(() => reading.stop())
}

const passAll = { has: async () => true }

function isSelected(
  record: LogRecord,
  { key, since = 0, offset, organization }: EventsOptions,
): boolean {
  const isOfOrganization = !organization || record.headers.organization_id === organization
  return (
    (!key || record.key === key) &&
    isOfOrganization &&
    record.timestamp >= since &&
    record.offset >= offset
  )
}

// What cannot be read is printed, too, because this is how one finds what stops a partition.
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

/** The event as it is printed; `open` = the keys of what is encrypted were looked up. */
export function readableEvent(
  { type, meta, position, data, cause, unreadable }: RecordedEvent,
  open: boolean,
) {
  const readable = unreadable !== undefined && isPersonal(type) ? withoutPersonal(type, data) : data
  const members = Object.entries({ ...readable, ...cause })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, Buffer.isBuffer(value) ? value.toString('base64') : value])
  // Fields about a person are null where the key was not used or is gone.
  const sealed = unreadable === undefined ? {} : { sealed: open ? 'erased' : 'closed' }
  return { type, meta, position, ...sealed, data: Object.fromEntries(members) }
}
