import type { EventCodec } from '../../../infra/event-store/codec.ts'
import { skipInCopy } from '../../../infra/event-store/skips.ts'
import { compareTopic } from '../../../infra/log/copy/compare-topic.ts'
import { refuseOtherRecords } from '../../../infra/log/copy/copied.ts'
import { copyTopic } from '../../../infra/log/copy/copy-topic.ts'
import type { OffsetMap } from '../../../infra/log/copy/offset-map.ts'
import {
  type EventLog,
  type LogRecord,
  LogUnavailable,
  type Position,
  type ReceivingLog,
  type TopicSpec,
} from '../../../infra/log/port.ts'
import { readRecords } from '../../../infra/log/read-topic.ts'
import { eventTopics } from '../../../schemas/events.ts'

export interface CopyDeps {
  source: EventLog
  target: ReceivingLog
  codec: EventCodec
  specs: TopicSpec[]
  onProgress: (line: string) => void
}

export interface Copied {
  /** Ends of the source. */
  ends: Position[]
  /** Where records went, of each topic whose records expire. */
  moved: Map<string, OffsetMap>
  topics: { topic: string; copied: number }[]
}

const skipTopic = eventTopics.RecordSkipped

/**
 * Copies what the target lacks of these topics. Decisions to skip are left for the copy that the database is bound to:
 * they name records, of which the last may not be copied yet.
 */
export async function copyTopics(
  deps: CopyDeps,
  { withSkips }: { withSkips: boolean },
): Promise<Copied> {
  const { specs, onProgress } = deps
  for (const spec of specs) await refuseOtherRecords(placeOf(deps, spec))
  const result: Copied = { ends: [], moved: new Map(), topics: [] }
  for (const spec of inOrder(specs).filter(({ topic }) => withSkips || topic !== skipTopic)) {
    let copied = 0
    const onCopied = (records: number) => {
      copied += records
      onProgress(`${spec.topic}: ${copied} records copied`)
    }
    const change = changeOf(deps, spec, result)
    const { ends, offsets } = await copyTopic({ ...placeOf(deps, spec), change, onCopied }).catch(
      stopped,
    )
    result.ends.push(...ends)
    result.topics.push({ topic: spec.topic, copied })
    if (expires(spec)) result.moved.set(spec.topic, offsets)
  }
  return result
}

function stopped(error: unknown): never {
  if (!(error instanceof LogUnavailable)) throw error
  const why =
    error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
  throw new Error(`The copy stopped. ${why}. Run it again: it goes on where it ended.`, {
    cause: error,
  })
}

/** How many records of each topic are the same in both logs. Throws where one differs. */
export async function compareTopics(deps: CopyDeps, copied: Copied): Promise<Map<string, number>> {
  const compared = new Map<string, number>()
  for (const spec of deps.specs) {
    deps.onProgress(`${spec.topic}: comparing`)
    const ends = copied.ends.filter(({ topic }) => topic === spec.topic)
    const change = changeOf(deps, spec, copied)
    compared.set(spec.topic, await compareTopic({ ...placeOf(deps, spec), ends, change }))
  }
  return compared
}

/** Throws where the settings name other schema ids than the log was written with: nobody could read the copy. */
export async function refuseOtherSchemas({ source, codec, specs }: CopyDeps): Promise<void> {
  const firsts: LogRecord[] = []
  for (const { topic } of specs)
    firsts.push(...(await readRecords(source, topic, await source.firstPositions(topic))))
  if (firsts.length === 0 || firsts.some((record) => isReadable(codec, record))) return
  throw new Error('No record can be read with these schema ids: set SCHEMA_REGISTRY_URL as it was.')
}

function isReadable(codec: EventCodec, record: LogRecord): boolean {
  try {
    return codec.fromRecord(record).type === record.headers.event_type
  } catch {
    return false
  }
}

const expires = ({ retentionMs }: TopicSpec) => retentionMs !== undefined
const placeOf = ({ source, target }: CopyDeps, spec: TopicSpec) => ({
  source,
  target,
  topic: spec.topic,
  expires: expires(spec),
})

// Decisions to skip name records of the other topics, so that these are copied first.
const inOrder = (specs: TopicSpec[]) => [
  ...specs.filter(({ topic }) => topic !== skipTopic),
  ...specs.filter(({ topic }) => topic === skipTopic),
]

function changeOf({ codec }: CopyDeps, { topic }: TopicSpec, { moved }: Pick<Copied, 'moved'>) {
  if (topic !== skipTopic) return undefined
  const offsetOf = (skipped: Position) => {
    const offsets = moved.get(skipped.topic)
    return offsets ? offsets.ofRecord(skipped) : skipped.offset
  }
  return (record: LogRecord) => skipInCopy(codec, record, offsetOf)
}
