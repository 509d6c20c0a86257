import { type Command, Option } from 'commander'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import type { EventLog, LogRecord, Position } from '../../infra/log/port.ts'
import { readRecords } from '../../infra/log/read-topic.ts'
import { errorMessage } from '../../infra/thrown.ts'
import { eventTopics } from '../../schemas/events.ts'
import { wholeNumber } from './arguments.ts'
import type { MoveFlags } from './move-log.ts'
import { appendOperatorEvent, userName } from './operator/operator-event.ts'

export function defineLog(command: Command): void {
  command
    .command('skip')
    .description('Skip a record that no consumer can read')
    .argument('<topic>', 'topic, such as tidegate.sessions.v1')
    .argument('<partition>', 'partition number', wholeNumber)
    .argument('<offset>', 'offset of the record, from the log line or /readyz', wholeNumber)
    .requiredOption('--reason <text>', 'reason to record')
    .addOption(new Option('--by <name>', 'name to record').default(userName(), 'your user name'))
    .action(runSkip)
  command
    .command('skipped')
    .description('List skipped records as JSON lines: who, when, why, and the bytes')
    .action(listSkipped)
  command
    .command('move')
    .description('Move from the embedded log to Kafka (KAFKA_BROKERS); stop all servers first')
    .option('--json', 'print the report as JSON', false)
    .action(async (flags: MoveFlags) => (await import('./move-log.ts')).moveLog(flags))
}

interface SkipReason {
  reason: string
  by: string
}

async function runSkip(
  topic: string,
  partition: number,
  offset: number,
  reason: SkipReason,
): Promise<void> {
  const { withStores } = await import('./operator/core.ts')
  const position = { topic, partition, offset }
  await withStores((stores) => skipRecord(stores, { position, ...reason }))
}

async function listSkipped(): Promise<void> {
  const { withStores } = await import('./operator/core.ts')
  const { printEvents } = await import('./events.ts')
  const topic = eventTopics.RecordSkipped
  await withStores((stores) => printEvents(stores, { topic, offset: 0, follow: false }))
}

// Stores only the start of the record: an event with a whole record could exceed the size limit of records.
const storedBytes = 64 * 1024

export async function skipRecord(
  { log, codec }: { log: EventLog; codec: EventCodec },
  { position, reason, by }: SkipReason & { position: Position },
): Promise<void> {
  const record = await requireRecord(log, position)
  const problem = requireUnreadable(codec, record)
  const now = Date.now()
  const data = {
    skipped_topic: position.topic,
    skipped_partition: position.partition,
    skipped_offset: position.offset,
    reason,
    skipped_by: by,
    skipped_at: now,
    why_unreadable: problem,
    record_key: record.key,
    record_headers: record.headers,
    record_value: record.value.subarray(0, storedBytes),
  }
  const details = { command: 'log skip', idPrefix: 'skip', now }
  await appendOperatorEvent({ log, codec }, { type: 'RecordSkipped', data }, details)
  console.log(
    `Consumers will skip ${position.topic}/${position.partition} offset ${position.offset}: ${problem}`,
  )
}

// Returns the decoding error. Throws if the record is readable, because skipping it would lose data.
function requireUnreadable(codec: EventCodec, record: LogRecord): string {
  let type: string
  try {
    type = codec.fromRecord(record).type
  } catch (error) {
    return errorMessage(error)
  }
  throw new Error(
    `The record is readable (${type}), so it cannot be skipped: fix the consumer that fails on it (docs/operate/recovery.md).`,
  )
}

async function requireRecord(log: EventLog, position: Position): Promise<LogRecord> {
  const ends = await log.endPositions(position.topic)
  const end = ends.find(({ partition }) => partition === position.partition)
  if (!end || position.offset >= end.offset)
    throw new Error('No such record: check the topic, partition and offset.')
  const [record] = await readRecords(log, position.topic, [position])
  if (!record) throw new Error('The record has been deleted from the log.')
  return record
}
