import kafkajs, { type Admin } from 'kafkajs'
import type { Logger } from 'pino'
import type { TopicSpec } from '../port.ts'
import type { ReconnectingClient } from './producer.ts'

interface FollowOptions {
  admin: Pick<ReconnectingClient<Admin>, 'use'>
  prefix: string
  specs: TopicSpec[]
  /** Bytes of the largest batch that is appended. */
  maxMessageBytes: number
  logger: Pick<Logger, 'error'>
}

const hourMs = 60 * 60 * 1000
// Some hosted brokers take no shorter ones.
const shortestSegmentMs = 4 * hourMs

interface Entry {
  name: string
  value: string
}

/**
 * What a topic has for its retention. A broker deletes whole segments, by their newest record: with its own, of a week,
 * the oldest records of a quiet topic would stay for a week longer.
 */
export function retentionEntries({ retentionMs, compactedWithinMs }: TopicSpec): Entry[] {
  if (compactedWithinMs !== undefined) return compactionEntries(compactedWithinMs)
  const retention = { name: 'retention.ms', value: String(retentionMs ?? -1) }
  if (retentionMs === undefined || retentionMs < 24 * hourMs) return [retention]
  const segmentMs = Math.max(shortestSegmentMs, Math.floor(retentionMs / 7))
  return [retention, { name: 'segment.ms', value: String(segmentMs) }]
}

const minuteMs = 60 * 1000

/**
 * A record is gone from the disk when its segment was rolled, cleaned and unlinked. A broker rolls and cleans when
 * something is appended: whoever writes the topic appends to each partition at least four times within the time. What
 * says that a key has nothing stays longer, because a reader that misses it keeps what it had.
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

type Found = Awaited<ReturnType<Admin['describeConfigs']>>['resources'][number]

/**
 * Sets the retention of topics that already exist, where the settings have a time. Returns a warning for what could not
 * be set, and for topics that lose what is otherwise kept forever, because someone may have meant that. Throws where a
 * topic cannot hold its largest record.
 */
export async function followSettings(options: FollowOptions): Promise<string[]> {
  const { admin, prefix, specs } = options
  const resources = specs.map(({ topic }) => ({
    type: kafkajs.ConfigResourceTypes.TOPIC,
    name: prefix + topic,
  }))
  const query = { includeSynonyms: false, resources }
  const found = await admin
    .use((connected) => connected.describeConfigs(query))
    .catch(() => undefined)
  if (!found)
    return ['how long topics keep their records was not seen: the Kafka user lacks DescribeConfigs']
  const warnings: string[] = []
  for (const spec of specs) {
    const topic = found.resources.find(({ resourceName }) => resourceName === prefix + spec.topic)
    if (!topic) continue
    requireMessageSize(topic, { ...options, spec })
    warnings.push(...(await follow(admin, { spec, topic })))
  }
  return warnings
}

function requireMessageSize(
  topic: Found,
  { spec, maxMessageBytes: needed, logger }: FollowOptions & { spec: TopicSpec },
): void {
  const { resourceName: name } = topic
  const { largestRecordBytes: largest = 0 } = spec
  const value = Number(valueIn(topic, 'max.message.bytes') ?? needed)
  if (value < largest)
    throw new Error(
      `topic ${name}: max.message.bytes must be ${needed}, got ${value}: records have up to ${largest} bytes`,
    )
  const message = 'max.message.bytes of a topic is too small: the broker refuses large appends'
  if (value < needed) logger.error({ topic: name, value, needed }, message)
}

const valueIn = ({ configEntries }: Found, name: string) =>
  configEntries.find(({ configName }) => configName === name)?.configValue

async function follow(
  admin: FollowOptions['admin'],
  { spec, topic }: { spec: TopicSpec; topic: Found },
): Promise<string[]> {
  const entries = retentionEntries(spec)
  const other = entries.find(({ name, value }) => valueIn(topic, name) !== value)
  if (!other) return []
  const { resourceName: name } = topic
  const is = `${other.name} is ${valueIn(topic, other.name)}`
  if (spec.retentionMs === undefined && spec.compactedWithinMs === undefined)
    return [`topic ${name}: ${is}, so it loses what is kept for ever otherwise`]
  const changes = entries.map((entry) => `${entry.name} ${entry.value}`).join(' and ')
  return admin
    .use((connected) => connected.alterConfigs(altered(topic, entries)))
    .then(
      () => [],
      (error: Error) => [
        `topic ${name}: ${is}, and could not be set to ${changes} (${error.message})`,
      ],
    )
}

// The request replaces all that the topic has of its own, so that is sent along.
function altered({ resourceName: name, configEntries }: Found, entries: Entry[]) {
  const own = configEntries
    .filter(({ configSource }) => configSource === kafkajs.ConfigSource.TOPIC_CONFIG)
    .map((entry) => ({ name: entry.configName, value: entry.configValue }))
  const others = own.filter((entry) => entries.every((one) => one.name !== entry.name))
  const type = kafkajs.ConfigResourceTypes.TOPIC
  return {
    validateOnly: false,
    resources: [{ type, name, configEntries: [...others, ...entries] }],
  }
}
