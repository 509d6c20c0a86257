import type { Command } from 'commander'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import type { EventLog, LogRecord, Position } from '../../infra/log/port.ts'
import { readRecords } from '../../infra/log/read-topic.ts'
import { errorMessage } from '../../infra/thrown.ts'
import { eventTopics } from '../../schemas/events.ts'
import { wholeNumber } from './arguments.ts'
import type { MoveFlags } from './move-log.ts'
import { recordFact, userName } from './operator/facts.ts'

export function defineLog(command: Command): void {
  command
    .command('skip')
    .description('Let the consumers of a topic go on behind a record that none of them can read')
    .argument('<topic>', 'for example tidegate.sessions.v1')
    .argument('<partition>', 'its number', wholeNumber)
    .argument('<offset>', 'of the record, as the log line and /readyz say', wholeNumber)
    .requiredOption('--reason <text>', 'why, for those who come later')
    .option('--by <name>', 'who decided', userName())
    .action(skipOne)
  command
    .command('skipped')
    .description(
      'List the records that were left out, as JSON lines: who, when, why, and the bytes',
    )
    .action(listSkipped)
  command
    .command('move')
    .description('Move from the embedded log to the Kafka of KAFKA_BROKERS, while no server runs')
    .option('--json', 'print the report as JSON', false)
    .action(async (flags: MoveFlags) => (await import('./move-log.ts')).runMove(flags))
}

interface Decision {
  reason: string
  by: string
}

async function skipOne(
  topic: string,
  partition: number,
  offset: number,
  decision: Decision,
): Promise<void> {
  const { withStores } = await import('./operator/core.ts')
  await withStores((stores) => skip(stores, { place: { topic, partition, offset }, ...decision }))
}

async function listSkipped(): Promise<void> {
  const { withStores } = await import('./operator/core.ts')
  const { printEvents } = await import('./events.ts')
  const topic = eventTopics.RecordSkipped
  await withStores((stores) => printEvents(stores, { topic, offset: 0, follow: false }))
}

// A record may be as large as the log takes, and a fact that has all of it would be larger. So only its beginning is stored.
const storedBytes = 64 * 1024

export async function skip(
  { log, codec }: { log: EventLog; codec: EventCodec },
  { place, reason, by }: Decision & { place: Position },
): Promise<void> {
  const record = await readRecord(log, place)
  const why = unreadableBecause(codec, record)
  const now = Date.now()
  const data = {
    skipped_topic: place.topic,
    skipped_partition: place.partition,
    skipped_offset: place.offset,
    reason,
    skipped_by: by,
    skipped_at: now,
    why_unreadable: why,
    record_key: record.key,
    record_headers: record.headers,
    record_value: record.value.subarray(0, storedBytes),
  }
  const about = { command: 'log skip', idPrefix: 'skip', now }
  await recordFact({ log, codec }, { type: 'RecordSkipped', data }, about)
  console.log(
    `Consumers leave ${place.topic}/${place.partition} offset ${place.offset} out: ${why}`,
  )
}

// Throws for a record that can be read, because skipping it would lose what it says. What fails at it is to be mended.
function unreadableBecause(codec: EventCodec, record: LogRecord): string {
  let type: string
  try {
    type = codec.fromRecord(record).type
  } catch (error) {
    return errorMessage(error)
  }
  throw new Error(
    `The record can be read, as ${type}: fix what stops at it (docs/operate/recovery.md).`,
  )
}

async function readRecord(log: EventLog, place: Position): Promise<LogRecord> {
  const ends = await log.endPositions(place.topic)
  const end = ends.find(({ partition }) => partition === place.partition)
  if (!end || place.offset >= end.offset)
    throw new Error('There is no such record: see topic, partition and offset.')
  const [record] = await readRecords(log, place.topic, [place])
  if (!record) throw new Error('The record is not on the log any more.')
  return record
}
