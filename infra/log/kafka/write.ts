import type { Message, Producer, RecordMetadata } from 'kafkajs'
import type { PlacedRecord } from '../group-commit.ts'
import type { Position } from '../port.ts'

/** How long a broker waits for the other in-sync replicas. */
const replicasTimeoutMs = 4000

/** Sends one batch with one request to each leader and waits until all in-sync replicas have it. */
export async function writeBatch(
  producer: Producer,
  prefix: string,
  records: PlacedRecord[],
): Promise<Position[]> {
  const byTopic = Map.groupBy(records, (record) => record.topic)
  const topicMessages = [...byTopic].map(([topic, some]) => ({
    topic: prefix + topic,
    messages: some.map(toMessage),
  }))
  const answers = await producer.sendBatch({ topicMessages, acks: -1, timeout: replicasTimeoutMs })
  return positionsOf(records, prefix, answers)
}

const toMessage = ({ key, value, headers, partition }: PlacedRecord): Message => ({
  key,
  value,
  headers,
  partition,
})

/** Kafka answers with each partition's first offset; its records follow in the order they were sent. */
function positionsOf(records: PlacedRecord[], prefix: string, answers: RecordMetadata[]): Position[] {
  const next = new Map<string, number>()
  for (const { topicName, partition, baseOffset } of answers) {
    if (baseOffset === undefined || baseOffset === '-1') throw new Error('the broker gave no offset')
    next.set(`${topicName} ${partition}`, Number(baseOffset))
  }
  return records.map(({ topic, partition }) => {
    const name = `${prefix}${topic} ${partition}`
    const offset = next.get(name)
    if (offset === undefined) throw new Error('the broker did not answer for every partition')
    next.set(name, offset + 1)
    return { topic, partition, offset }
  })
}
