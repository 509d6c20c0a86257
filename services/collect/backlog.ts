import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { Position } from '../../infra/log/port.ts'
import { progressOf } from '../../infra/log/progress.ts'

/*
 * Measures the backlog of the consumers behind collect as the age of their oldest unprocessed record. The age tells how
 * long callers wait; a record count would not, because machines differ in speed. Ages are measured with the clock of
 * this process, because timestamps on the log come from the database or the sender.
 */

/** Offsets of one consumer's topic. The consumer may run in any process. */
export interface BacklogStage {
  starts: () => Promise<Position[]>
  ends: () => Promise<Position[]>
  /** Returns the next offsets that the consumer will process. */
  committed: () => Promise<Position[]>
}

const maxMarks = 64

/**
 * Tracks the age of one partition's oldest unprocessed record. The returned function takes the end offset and the next
 * offset to process, and returns how long ago this process first saw a record that is still unprocessed, in
 * milliseconds; 0 if there is no backlog.
 */
export function createAgeTracker(): (reading: {
  end: number
  next: number
  now: number
}) => number {
  let marks: { end: number; seenAt: number }[] = []
  return ({ end, next, now }) => {
    // A mark beyond the end was made before the log was restored to an earlier state.
    marks = marks.filter((mark) => mark.end > next && mark.end <= end)
    if (end > next && marks.at(-1)?.end !== end) marks.push({ end, seenAt: now })
    // Drop every other mark, so that memory is bounded while a consumer is down.
    if (marks.length > maxMarks) marks = marks.filter((_, i) => i % 2 === 0)
    return marks[0] ? now - marks[0].seenAt : 0
  }
}

interface BacklogOptions {
  stages: BacklogStage[]
  onError: (error: unknown) => void
  clock?: () => number
  intervalMs?: number
}

export interface Backlog {
  /**
   * Returns the age of each partition in milliseconds: the sum over all stages, at its highest in the last half second.
   * Empty if unknown.
   */
  ages(): readonly number[]
  stop(): Promise<void>
}

// The age drops after each batch, however far behind the consumer is, so use the maximum of this period.
const holdMs = 500
// Ignore older readings: reads may be failing.
const maxReadingAgeMs = 5000

/** Reads the offsets of all stages periodically until stopped. */
export function watchBacklog(options: BacklogOptions): Backlog {
  const { stages, onError, clock = () => performance.now(), intervalMs = 250 } = options
  const readers = stages.map(createReader)
  let recent: { ages: number[]; at: number }[] = []

  async function read(): Promise<void> {
    const stageAges = await Promise.all(readers.map((readAges) => readAges(clock)))
    const at = clock()
    const ages = combineByPartition(stageAges, (list) => list.reduce((sum, age) => sum + age, 0))
    recent = [...recent.filter((reading) => at - reading.at < holdMs), { ages, at }]
  }

  const { stop } = runPeriodically({ intervalMs, work: read, onError })
  return {
    ages() {
      const current = recent.filter(({ at }) => clock() - at < maxReadingAgeMs)
      return combineByPartition(
        current.map(({ ages }) => ages),
        (list) => Math.max(...list),
      )
    },
    stop,
  }
}

function combineByPartition(lists: number[][], combine: (ages: number[]) => number): number[] {
  const partitions = Math.max(0, ...lists.map((ages) => ages.length))
  return Array.from({ length: partitions }, (_, i) => combine(lists.map((ages) => ages[i] ?? 0)))
}

function createReader(stage: BacklogStage): (clock: () => number) => Promise<number[]> {
  const trackers = new Map<number, ReturnType<typeof createAgeTracker>>()
  return async (clock) => {
    // In two steps, because each concurrent read takes a connection.
    const starts = await stage.starts()
    const [ends, stored] = await Promise.all([stage.ends(), stage.committed()])
    const now = clock()
    return progressOf({ stored, starts, ends }).map(({ topicPartition, next, end }) => {
      const ageOf = trackers.get(topicPartition.partition) ?? createAgeTracker()
      trackers.set(topicPartition.partition, ageOf)
      return ageOf({ end, next, now })
    })
  }
}
