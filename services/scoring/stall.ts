import { Gauge, type Registry } from 'prom-client'
import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { EventLog, Position } from '../../infra/log/port.ts'
import { progressOf } from '../../infra/log/progress.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { eventTopics } from '../../schemas/events.ts'

/** Sums over the partitions of the collect topic, at `now` in milliseconds. */
interface Reading {
  /** End of the log. */
  end: number
  /** Records that still exist and were not read. */
  waiting: number
  /** The stored next offsets, which expired records do not move. */
  read: number
  now: number
}

const goodForMs = 30_000

/**
 * Returns for how many milliseconds the backlog has grown while nothing was read; 0 while something is read or nothing
 * waits. Begins anew after 30 seconds without a reading, because the log or the database was away.
 */
export function createStall(): (reading: Reading) => number {
  let since: Reading | undefined
  let lastAt = 0
  return (reading) => {
    const isUnknown = since === undefined || reading.now - lastAt > goodForMs
    lastAt = reading.now
    if (isUnknown || reading.read !== since?.read || reading.waiting === 0) since = reading
    return since && reading.end > since.end ? reading.now - since.now : 0
  }
}

interface StallOptions {
  /** The next offsets that scoring has stored. */
  readStored: () => Promise<Position[]>
  log: Pick<EventLog, 'firstPositions' | 'endPositions'>
  logger: Logger
  registry: Registry
  /** Milliseconds of which only differences matter. */
  clock?: () => number
  intervalMs?: number
}

const topic = eventTopics.BatchReceived
const stalledAfterSeconds = 60

/** Watches whether any process reads what collect records. The reason is undefined unless scoring has stalled. */
export function watchStall(options: StallOptions) {
  const {
    readStored,
    log,
    logger,
    registry,
    clock = () => performance.now(),
    intervalMs = 5000,
  } = options
  const stall = createStall()
  let reason: string | undefined
  const gauge = new Gauge({
    name: 'tidegate_scoring_stalled_seconds',
    help: 'For how long the backlog of scoring has grown while nothing was read; 0 while it reads.',
    registers: [registry],
  })

  async function work(): Promise<false> {
    const stored = await readStored()
    const firsts = await log.firstPositions(topic)
    const ends = await log.endPositions(topic)
    const [read, end] = [sumOf(stored), sumOf(ends)]
    const progress = progressOf({ stored, firsts, ends })
    const waiting = progress.reduce((sum, { next, end }) => sum + end - next, 0)
    const seconds = stall({ end, waiting, read, now: clock() }) / 1000
    gauge.set(seconds)
    const wasStalled = reason !== undefined
    reason =
      seconds < stalledAfterSeconds
        ? undefined
        : `nothing was read from ${topic} for ${Math.round(seconds)} s while ${waiting} records wait`
    const fields = { topic, waiting, seconds }
    if (reason && !wasStalled) logger.error(fields, 'scoring reads nothing while its backlog grows')
    if (wasStalled && !reason) logger.info(fields, 'scoring reads again')
    return false
  }

  const onError = (err: unknown) =>
    logger.debug({ err }, 'progress of scoring was not read; trying again')
  const { stop } = runPeriodically({ intervalMs, work, onError })
  return { reason: () => reason, stop }
}

const sumOf = (positions: Position[]): number =>
  positions.reduce((sum, { offset }) => sum + offset, 0)
