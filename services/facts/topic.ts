import type { Config } from '../../infra/config.ts'
import { invalid } from '../../infra/http/checked-fields.ts'
import type { EventLog, TopicSpec } from '../../infra/log/port.ts'

/**
 * Compacted topic of current session facts, in plaintext for consumers without data keys. Read models do not use it.
 */
export const factsTopic = 'tidegate.facts.v1'

export type FactsTopicSettings = Pick<Config, 'TOPIC_PARTITIONS' | 'FACTS_GONE_WITHIN_MS'>

export const factsTopicSpec = (config: FactsTopicSettings): TopicSpec => ({
  topic: factsTopic,
  partitions: config.TOPIC_PARTITIONS,
  compactedWithinMs: config.FACTS_GONE_WITHIN_MS,
})

/**
 * Creates the topic or updates its settings. Rejects with 422 on the embedded log, which has no compacted topics, and
 * if the brokers refuse a setting.
 */
export async function createFactsTopic({ log, config }: TopicDeps): Promise<void> {
  if (config.KAFKA_BROKERS.length === 0)
    throw invalid(noCompactedTopics, 'organization_data_policy')
  await log.ensureTopics([factsTopicSpec(config)])
}

interface TopicDeps {
  log: Pick<EventLog, 'ensureTopics'>
  config: FactsTopicSettings & Pick<Config, 'KAFKA_BROKERS'>
}

const noCompactedTopics = {
  name: 'facts_topic',
  issue: 'invalid',
  expected: 'needs Kafka as the log; with the embedded log, query the view read.session_facts',
} as const
