import { Gauge, type Registry } from 'prom-client'
import { liveOffsets } from '../../infra/event-store/builds.ts'
import { type Position, placeName, type Topic } from '../../infra/log/port.ts'
import { progressOf } from '../../infra/log/progress.ts'
import { seldom } from '../../infra/timing.ts'
import { eventTopics } from '../../schemas/events.ts'
import { createAge } from '../collect/backlog.ts'
import { readOffsets } from '../scoring/store.ts'
import { plannerGroup } from '../webhooks/planner/planner.ts'
import { type Core, projections } from './dependencies.ts'

interface Group {
  name: string
  topics: Topic[]
  /** The next offsets that it goes on from. */
  done: () => Promise<Position[]>
}

function groupsOf({ pool, log }: Pick<Core, 'pool' | 'log'>): Group[] {
  const collected = eventTopics.BatchReceived
  const decided = [eventTopics.SessionScored]
  return [
    ...projections.map(({ name, topics }) => ({
      name,
      topics,
      done: () => liveOffsets(pool, name),
    })),
    { name: 'scoring', topics: [collected], done: () => readOffsets(pool, collected) },
    { name: 'planner', topics: decided, done: () => log.committed(plannerGroup, decided) },
  ]
}

interface Lag {
  labels: { group: string; topic: string; partition: number }
  records: number
  /** For how long this process has known of what the group has not reached yet. */
  seconds: number
}

export type Lags = () => Promise<Lag[]>

export function measureLags(lags: Lags, registry: Registry): void {
  const gauge = (name: string, help: string, numberOf: (lag: Lag) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['group', 'topic', 'partition'],
      registers: [registry],
      async collect() {
        const read = await lags()
        this.reset()
        for (const lag of read) this.set(lag.labels, numberOf(lag))
      },
    })
  gauge(
    'tidegate_consumer_lag_records',
    'Records that a consumer has not dealt with.',
    ({ records }) => records,
  )
  gauge(
    'tidegate_consumer_lag_seconds',
    'For how long at least a consumer has had records that it has not dealt with.',
    ({ seconds }) => seconds,
  )
}

/** How far each consumer is behind the log, in whichever process it runs. Calls during a reading share its answer. */
export function createLags(core: Pick<Core, 'pool' | 'log'>): Lags {
  const { log } = core
  const ages = new Map<string, ReturnType<typeof createAge>>()

  async function lagsOf({ name, topics, done }: Group): Promise<Lag[]> {
    // What is done is read before the ends, so that no lag is negative.
    const stored = await done()
    const firsts = (await Promise.all(topics.map((topic) => log.firstPositions(topic)))).flat()
    const ends = (await Promise.all(topics.map((topic) => log.endPositions(topic)))).flat()
    return progressOf({ stored, firsts, ends }).map(({ place, next, end }) => {
      const key = `${name} ${placeName(place)}`
      const ageOf = ages.get(key) ?? createAge()
      ages.set(key, ageOf)
      return {
        labels: { group: name, topic: place.topic, partition: place.partition },
        records: Math.max(0, end - next),
        seconds: ageOf({ end, done: next, now: performance.now() }) / 1000,
      }
    })
  }

  return seldom(0, async () => (await Promise.all(groupsOf(core).map(lagsOf))).flat())
}
