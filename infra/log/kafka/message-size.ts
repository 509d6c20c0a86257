import kafkajs, { type Admin } from 'kafkajs'
import type { Logger } from 'pino'
import type { TopicSpec } from '../port.ts'
import type { ReconnectingClient } from './producer.ts'

interface SizeOptions {
  admin: Pick<ReconnectingClient<Admin>, 'use'>
  prefix: string
  specs: TopicSpec[]
  logger: Pick<Logger, 'error'>
  /** Bytes of the largest batch that is appended. */
  needed: number
}

const name = 'max.message.bytes'

/**
 * Throws where a topic cannot hold the largest record of its spec. Logs an error where it cannot hold a full batch, which
 * the broker refuses under load. The value is the topic's own or the broker's default.
 */
export async function requireMessageSize({
  admin,
  prefix,
  specs,
  logger,
  needed,
}: SizeOptions): Promise<void> {
  const resources = specs.map(({ topic }) => ({
    type: kafkajs.ConfigResourceTypes.TOPIC,
    name: prefix + topic,
    configNames: [name],
  }))
  const query = { includeSynonyms: false, resources }
  // A user without DescribeConfigs is warned about the retention.
  const found = await admin.use((connected) => connected.describeConfigs(query)).catch(() => undefined)
  for (const spec of specs) {
    const topic = prefix + spec.topic
    const entries = found?.resources.find(({ resourceName }) => resourceName === topic)?.configEntries ?? []
    const value = Number(entries.find(({ configName }) => configName === name)?.configValue ?? needed)
    const { largestRecordBytes: largest = 0 } = spec
    if (value < largest)
      throw new Error(
        `topic ${topic}: ${name} must be ${needed}, got ${value}: records have up to ${largest} bytes`,
      )
    if (value < needed)
      logger.error(
        { topic, value, needed },
        `${name} of a topic is too small: the broker refuses large appends`,
      )
  }
}
