import { Gauge, type Registry } from 'prom-client'
import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { EventLog, Position } from '../../infra/log/port.ts'
import { progressOf } from '../../infra/log/progress.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { eventTopics } from '../../schemas/events.ts'

/** Sums over the partitions of the collect topic. */
interface Sample {
  /** End offsets. */
  end: number
  /** Unread records that have not expired. */
  waiting: number
  /** Stored next offsets. Expired records don't advance them. */
  read: number
  /** Milliseconds. */
  now: number
}

const maxSampleAgeMs = 30_000

/**
 * Returns a function that takes a sample and returns for how many milliseconds the backlog has grown while nothing was
 * read. It starts over after 30 seconds without a sample, because the log or the database was down.
 */
export function createStallDetector(): (sample: Sample) => number {
  let since: Sample | undefined
  let lastAt = 0
  return (sample) => {
    const isStale = since === undefined || sample.now - lastAt > maxSampleAgeMs
    lastAt = sample.now
    if (isStale || sample.read !== since?.read || sample.waiting === 0) since = sample
    return since && sample.end > since.end ? sample.now - since.now : 0
  }
}

interface StallOptions {
  /** Reads the next offsets that scoring has stored. */
  readStored: () => Promise<Position[]>
  log: Pick<EventLog, 'firstPositions' | 'endPositions'>
  logger: Logger
  registry: Registry
  /** Monotonic clock, milliseconds. */
  clock?: () => number
  intervalMs?: number
}

const topic = eventTopics.BatchReceived
const stalledAfterSeconds = 60

/** Detects when no process reads the collect topic. `reason` returns undefined unless scoring is stalled. */
export function watchStall(options: StallOptions) {
  const {
    readStored,
    log,
    logger,
    registry,
    clock = () => performance.now(),
    intervalMs = 5000,
  } = options
  const stalledMs = createStallDetector()
  let reason: string | undefined
  const gauge = new Gauge({
    name: 'tidegate_scoring_stalled_seconds',
    help: 'Time that scoring has read nothing while its backlog grows; 0 while it reads.',
    registers: [registry],
  })

  async function work(): Promise<void> {
    const stored = await readStored()
    const starts = await log.firstPositions(topic)
    const ends = await log.endPositions(topic)
    const [read, end] = [sumOf(stored), sumOf(ends)]
    const progress = progressOf({ stored, starts, ends })
    const waiting = progress.reduce((sum, { next, end }) => sum + end - next, 0)
    const seconds = stalledMs({ end, waiting, read, now: clock() }) / 1000
    gauge.set(seconds)
    const wasStalled = reason !== undefined
    reason =
      seconds < stalledAfterSeconds
        ? undefined
        : `scoring has read nothing from ${topic} for ${Math.round(seconds)} s; ${waiting} records are waiting`
    const fields = { topic, waiting, seconds }
    if (reason && !wasStalled)
      logger.error(fields, 'scoring is stalled: it reads nothing while its backlog grows')
    if (wasStalled && !reason) logger.info(fields, 'scoring resumed')
  }

  const onError = (err: unknown) =>
    logger.debug({ err }, 'failed to read scoring progress; retrying')
  const { stop } = runPeriodically({ intervalMs, work, onError })
  return { reason: () => reason, stop }
}

const sumOf = (positions: Position[]): number =>
  positions.reduce((sum, { offset }) => sum + offset, 0)
