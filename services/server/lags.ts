import { Gauge, type Registry } from 'prom-client'
import { loadLiveOffsets } from '../../infra/event-store/builds.ts'
import { type Position, partitionName, type Topic } from '../../infra/log/port.ts'
import { progressOf } from '../../infra/log/progress.ts'
import { cachedFor } from '../../infra/timing.ts'
import { eventTopics } from '../../schemas/events.ts'
import { createAgeTracker } from '../collect/backlog.ts'
import { readOffsets } from '../scoring/store.ts'
import { plannerGroup } from '../webhooks/planner/planner.ts'
import { type Core, projections } from './dependencies.ts'

interface ConsumerGroup {
  name: string
  topics: Topic[]
  /** Returns the next offsets that the group will process. */
  committed: () => Promise<Position[]>
}

function groupsOf({ pool, log }: Pick<Core, 'pool' | 'log'>): ConsumerGroup[] {
  const bodies = eventTopics.BatchReceived
  const decisions = [eventTopics.SessionScored]
  return [
    ...projections.map(({ name, topics }) => ({
      name,
      topics,
      committed: () => loadLiveOffsets(pool, name),
    })),
    { name: 'scoring', topics: [bodies], committed: () => readOffsets(pool, bodies) },
    {
      name: 'planner',
      topics: decisions,
      committed: () => log.committedPositions(plannerGroup, decisions),
    },
  ]
}

interface Lag {
  labels: { group: string; topic: string; partition: number }
  records: number
  /** Time since this process first saw records beyond the group's next offset: a lower bound of the delay. */
  seconds: number
}

export type LagReader = () => Promise<Lag[]>

export function registerLagGauges(lags: LagReader, registry: Registry): void {
  const gauge = (name: string, help: string, numberOf: (lag: Lag) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['group', 'topic', 'partition'],
      registers: [registry],
      async collect() {
        const readings = await lags()
        this.reset()
        for (const lag of readings) this.set(lag.labels, numberOf(lag))
      },
    })
  gauge(
    'tidegate_consumer_lag_records',
    'Records that the consumer has not processed.',
    ({ records }) => records,
  )
  gauge(
    'tidegate_consumer_lag_seconds',
    'Minimum time that the consumer has been behind.',
    ({ seconds }) => seconds,
  )
}

/** Returns a function that reads the lags of consumers in any process. Concurrent calls share one reading. */
export function createLagReader(core: Pick<Core, 'pool' | 'log'>): LagReader {
  const { log } = core
  const trackers = new Map<string, ReturnType<typeof createAgeTracker>>()

  async function lagsOf({ name, topics, committed }: ConsumerGroup): Promise<Lag[]> {
    // Read committed offsets before the ends, so that no lag is negative.
    const stored = await committed()
    const starts = (await Promise.all(topics.map((topic) => log.firstPositions(topic)))).flat()
    const ends = (await Promise.all(topics.map((topic) => log.endPositions(topic)))).flat()
    return progressOf({ stored, starts, ends }).map(({ topicPartition, next, end }) => {
      const key = `${name} ${partitionName(topicPartition)}`
      const ageOf = trackers.get(key) ?? createAgeTracker()
      trackers.set(key, ageOf)
      return {
        labels: { group: name, topic: topicPartition.topic, partition: topicPartition.partition },
        records: Math.max(0, end - next),
        seconds: ageOf({ end, next, now: performance.now() }) / 1000,
      }
    })
  }

  return cachedFor(0, async () => (await Promise.all(groupsOf(core).map(lagsOf))).flat())
}
