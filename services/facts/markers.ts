import type { EventLog, KeyedRecord } from '../../infra/log/port.ts'
import { seldom } from '../../infra/timing.ts'
import { type FactsTopicSettings, factsTopic } from './topic.ts'

interface MarkerDeps {
  log: EventLog
  config: FactsTopicSettings
}

/**
 * Appends a marker to each partition, four times within the time in which deleted records are to be gone: a broker rolls
 * and cleans a partition only when something is appended to it. A marker says that its key, which is no session's, has
 * nothing, so that readers pass over it as they are.
 */
export function createMarkers({ log, config }: MarkerDeps): () => Promise<unknown> {
  const found = seldom(Infinity, () => markersOf(log))
  return seldom(config.FACTS_GONE_WITHIN_MS / 4, async () => log.append(await found()))
}

// The same key of a partition each time, so that one of them stays.
async function markersOf(log: EventLog): Promise<KeyedRecord[]> {
  const partitions = (await log.endPositions(factsTopic)).length
  const keys = new Map<number, string>()
  for (let i = 0; keys.size < partitions; i++) {
    const key = `marker-${i}`
    const partition = await log.partitionOf(factsTopic, key)
    if (!keys.has(partition)) keys.set(partition, key)
  }
  return [...keys.values()].map((key) => ({ topic: factsTopic, key, value: null, headers: {} }))
}
