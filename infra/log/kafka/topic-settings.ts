import kafkajs, { type Admin } from 'kafkajs'
import type { Logger } from 'pino'
import type { TopicSpec } from '../port.ts'
import type { ReconnectingClient } from './producer.ts'

interface TopicSettingsOptions {
  admin: Pick<ReconnectingClient<Admin>, 'use'>
  prefix: string
  specs: TopicSpec[]
  /** Size of the largest batch that is appended. */
  maxMessageBytes: number
  logger: Pick<Logger, 'error'>
}

const hourMs = 60 * 60 * 1000
// Some hosted brokers reject shorter segments.
const minSegmentMs = 4 * hourMs

interface Entry {
  name: string
  value: string
}

/**
 * Returns the topic's configuration entries for retention or compaction. Brokers delete a segment as a whole, once its
 * newest record expires: with the default of a week per segment, a quiet topic's records would be kept a week longer.
 */
export function retentionEntries({ retentionMs, compactedWithinMs }: TopicSpec): Entry[] {
  if (compactedWithinMs !== undefined) return compactionEntries(compactedWithinMs)
  const retention = { name: 'retention.ms', value: String(retentionMs ?? -1) }
  if (retentionMs === undefined || retentionMs < 24 * hourMs) return [retention]
  const segmentMs = Math.max(minSegmentMs, Math.floor(retentionMs / 7))
  return [retention, { name: 'segment.ms', value: String(segmentMs) }]
}

const minuteMs = 60 * 1000

/**
 * Returns the entries that remove replaced records from disk within the time: their segment must be rolled, cleaned and
 * unlinked. Brokers only do that on appends, so the topic's writer must append to each partition at least four times
 * within the time. Tombstones are kept longer, because a reader that misses one keeps the deleted row.
 */
function compactionEntries(withinMs: number): Entry[] {
  const times = {
    'segment.ms': withinMs / 4,
    'max.compaction.lag.ms': withinMs / 2,
    'file.delete.delay.ms': Math.min(minuteMs, withinMs / 8),
    'delete.retention.ms': withinMs * 3.5,
  }
  const entries = Object.entries(times).map(([name, ms]) => ({
    name,
    value: String(Math.floor(ms)),
  }))
  return [{ name: 'cleanup.policy', value: 'compact' }, ...entries]
}

type TopicConfig = Awaited<ReturnType<Admin['describeConfigs']>>['resources'][number]

/**
 * Applies retention and compaction settings to existing topics. Returns a warning for each setting that could not be
 * changed, and for each topic that should be kept forever but has a retention, which is left alone because it may be
 * intended. Throws if a topic can't hold its largest record.
 */
export async function applyTopicSettings(options: TopicSettingsOptions): Promise<string[]> {
  const { admin, prefix, specs } = options
  const resources = specs.map(({ topic }) => ({
    type: kafkajs.ConfigResourceTypes.TOPIC,
    name: prefix + topic,
  }))
  const query = { includeSynonyms: false, resources }
  const configs = await admin
    .use((connected) => connected.describeConfigs(query))
    .catch(() => undefined)
  if (!configs)
    return ['cannot check the retention of topics: the Kafka user lacks DescribeConfigs']
  const warnings: string[] = []
  for (const spec of specs) {
    const topic = configs.resources.find(({ resourceName }) => resourceName === prefix + spec.topic)
    if (!topic) continue
    checkMessageSize(topic, { ...options, spec })
    warnings.push(...(await applyRetention(admin, { spec, topic })))
  }
  return warnings
}

function checkMessageSize(
  topic: TopicConfig,
  { spec, maxMessageBytes: needed, logger }: TopicSettingsOptions & { spec: TopicSpec },
): void {
  const { resourceName: name } = topic
  const { maxRecordBytes = 0 } = spec
  const value = Number(valueIn(topic, 'max.message.bytes') ?? needed)
  if (value < maxRecordBytes)
    throw new Error(
      `topic ${name}: max.message.bytes must be ${needed}, got ${value}: records can be ${maxRecordBytes} bytes`,
    )
  const message = 'max.message.bytes of a topic is too small: the broker will reject large appends'
  if (value < needed) logger.error({ topic: name, value, needed }, message)
}

const valueIn = ({ configEntries }: TopicConfig, name: string) =>
  configEntries.find(({ configName }) => configName === name)?.configValue

async function applyRetention(
  admin: TopicSettingsOptions['admin'],
  { spec, topic }: { spec: TopicSpec; topic: TopicConfig },
): Promise<string[]> {
  const entries = retentionEntries(spec)
  const mismatch = entries.find(({ name, value }) => valueIn(topic, name) !== value)
  if (!mismatch) return []
  const { resourceName: name } = topic
  const state = `${mismatch.name} is ${valueIn(topic, mismatch.name)}`
  if (spec.retentionMs === undefined && spec.compactedWithinMs === undefined)
    return [`topic ${name}: ${state}, so it deletes records that must be kept forever`]
  const changes = entries.map((entry) => `${entry.name} ${entry.value}`).join(' and ')
  return admin
    .use((connected) => connected.alterConfigs(alterRequest(topic, entries)))
    .then(
      () => [],
      (error: Error) => [
        `topic ${name}: ${state}, and setting ${changes} failed (${error.message})`,
      ],
    )
}

// Includes the topic's unchanged settings, because the request replaces all of them.
function alterRequest({ resourceName: name, configEntries }: TopicConfig, entries: Entry[]) {
  const changed = new Set(entries.map((entry) => entry.name))
  const unchanged = configEntries
    .filter(({ configSource }) => configSource === kafkajs.ConfigSource.TOPIC_CONFIG)
    .filter(({ configName }) => !changed.has(configName))
    .map((entry) => ({ name: entry.configName, value: entry.configValue }))
  const type = kafkajs.ConfigResourceTypes.TOPIC
  return {
    validateOnly: false,
    resources: [{ type, name, configEntries: [...unchanged, ...entries] }],
  }
}
