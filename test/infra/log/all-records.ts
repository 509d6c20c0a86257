import type { EventLog, LogRecord, Topic } from '../../../infra/log/port.ts'
import { readTopicToEnd } from '../../../infra/log/read-topic.ts'

/** Returns every record of the topic. */
export async function allRecords(log: EventLog, topic: Topic): Promise<LogRecord[]> {
  const all: LogRecord[] = []
  await readTopicToEnd({
    log,
    topic,
    handle: (batches) => void all.push(...batches.flatMap(({ records }) => records)),
  })
  return all
}
