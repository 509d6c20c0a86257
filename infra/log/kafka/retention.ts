import kafkajs, { type Admin } from 'kafkajs'
import type { TopicSpec } from '../port.ts'
import type { ReconnectingClient } from './producer.ts'

interface FollowOptions {
  admin: Pick<ReconnectingClient<Admin>, 'use'>
  prefix: string
  specs: TopicSpec[]
}

const hourMs = 60 * 60 * 1000
// Some hosted brokers take no shorter ones.
const shortestSegmentMs = 4 * hourMs

/**
 * What a topic has for its retention. A broker deletes whole segments, by their newest record: with its own, of a week,
 * the oldest records of a quiet topic would stay for a week longer.
 */
export function retentionEntries({ retentionMs }: TopicSpec): { name: string; value: string }[] {
  const retention = { name: 'retention.ms', value: String(retentionMs ?? -1) }
  if (retentionMs === undefined || retentionMs < 24 * hourMs) return [retention]
  const segmentMs = Math.max(shortestSegmentMs, Math.floor(retentionMs / 7))
  return [retention, { name: 'segment.ms', value: String(segmentMs) }]
}

type Found = Awaited<ReturnType<Admin['describeConfigs']>>['resources'][number]

/**
 * Brings topics that were there already to what the settings say, where they say a time. Returns in words what could
 * not be done, and which topics lose what is kept for ever: whoever set that may have meant it.
 */
export async function followRetention({ admin, prefix, specs }: FollowOptions): Promise<string[]> {
  const resources = specs.map(({ topic }) => ({
    type: kafkajs.ConfigResourceTypes.TOPIC,
    name: prefix + topic,
  }))
  const query = { includeSynonyms: false, resources }
  const found = await admin.use((connected) => connected.describeConfigs(query)).catch(() => undefined)
  if (!found) return ['how long topics keep their records was not seen: the Kafka user lacks DescribeConfigs']
  const warnings: string[] = []
  for (const spec of specs) {
    const topic = found.resources.find(({ resourceName }) => resourceName === prefix + spec.topic)
    if (topic) warnings.push(...(await follow(admin, { spec, topic })))
  }
  return warnings
}

const valueIn = ({ configEntries }: Found, name: string) =>
  configEntries.find(({ configName }) => configName === name)?.configValue

async function follow(
  admin: FollowOptions['admin'],
  { spec, topic }: { spec: TopicSpec; topic: Found },
): Promise<string[]> {
  const entries = retentionEntries(spec)
  if (entries.every(({ name, value }) => valueIn(topic, name) === value)) return []
  const { resourceName: name } = topic
  const is = `retention.ms is ${valueIn(topic, 'retention.ms')}`
  if (spec.retentionMs === undefined)
    return [`topic ${name}: ${is}, so it loses what is kept for ever otherwise`]
  const changes = entries.map((entry) => `${entry.name} ${entry.value}`).join(' and ')
  return admin
    .use((connected) => connected.alterConfigs(altered(topic, entries)))
    .then(
      () => [],
      (error: Error) => [`topic ${name}: ${is}, and could not be set to ${changes} (${error.message})`],
    )
}

// The request replaces all that the topic has of its own, so that is sent along.
function altered({ resourceName: name, configEntries }: Found, entries: { name: string; value: string }[]) {
  const own = configEntries
    .filter(({ configSource }) => configSource === kafkajs.ConfigSource.TOPIC_CONFIG)
    .map((entry) => ({ name: entry.configName, value: entry.configValue }))
  const others = own.filter((entry) => entries.every((one) => one.name !== entry.name))
  const type = kafkajs.ConfigResourceTypes.TOPIC
  return { validateOnly: false, resources: [{ type, name, configEntries: [...others, ...entries] }] }
}
