import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { Position } from '../../infra/log/port.ts'
import { progressOf } from '../../infra/log/progress.ts'

// Age is measured and not the number of records, because how many are too many depends on the machine, and age is how long
// a caller waits. It is taken by our own clock, because the log's times are those of the database or of the sender.

/** A consumer behind collect, in whichever process: where its topic begins and ends, and where it goes on. */
export interface Stage {
  firsts: () => Promise<Position[]>
  ends: () => Promise<Position[]>
  done: () => Promise<Position[]>
}

const maxMarks = 64

/**
 * How long the oldest record before `end` and not before `done` has waited, milliseconds, for one partition. It is
 * counted from when this process first saw an end behind it: no clock of another machine takes part.
 */
export function createAge(): (reading: { end: number; done: number; now: number }) => number {
  let marks: { end: number; seenAt: number }[] = []
  return ({ end, done, now }) => {
    // A mark with a later end than now is of a log that was restored to an earlier state.
    marks = marks.filter((mark) => mark.end > done && mark.end <= end)
    if (end > done && marks.at(-1)?.end !== end) marks.push({ end, seenAt: now })
    // The times between marks double. A stage without a consumer would fill the memory otherwise.
    if (marks.length > maxMarks) marks = marks.filter((_, i) => i % 2 === 0)
    return marks[0] ? now - marks[0].seenAt : 0
  }
}

interface BacklogOptions {
  stages: Stage[]
  onError: (error: unknown) => void
  clock?: () => number
  intervalMs?: number
}

export interface Backlog {
  /** Milliseconds by partition: the highest of the last half second, summed over the stages. Empty while unknown. */
  ages(): readonly number[]
  stop(): Promise<void>
}

// Consumers take what has come at once, so the age falls to nothing after each batch, however late they are.
const holdMs = 500
// A reading that is older says nothing any more: the database may be away.
const goodForMs = 5000

export function watchBacklog(options: BacklogOptions): Backlog {
  const { stages, onError, clock = () => performance.now(), intervalMs = 250 } = options
  const readers = stages.map(createReader)
  let recent: { ages: number[]; at: number }[] = []

  async function read(): Promise<boolean> {
    const byStage = await Promise.all(readers.map((readStage) => readStage(clock)))
    const at = clock()
    const ages = byPartition(byStage, (some) => some.reduce((sum, age) => sum + age, 0))
    recent = [...recent.filter((reading) => at - reading.at < holdMs), { ages, at }]
    return false
  }

  const { stop } = runPeriodically({ intervalMs, work: read, onError })
  return {
    ages() {
      const good = recent.filter(({ at }) => clock() - at < goodForMs)
      return byPartition(
        good.map(({ ages }) => ages),
        (some) => Math.max(...some),
      )
    },
    stop,
  }
}

function byPartition(lists: number[][], together: (ages: number[]) => number): number[] {
  const partitions = Math.max(0, ...lists.map((ages) => ages.length))
  return Array.from({ length: partitions }, (_, i) => together(lists.map((ages) => ages[i] ?? 0)))
}

function createReader(stage: Stage): (clock: () => number) => Promise<number[]> {
  const known = new Map<number, ReturnType<typeof createAge>>()
  return async (clock) => {
    // Read apart, because each read at the same time takes a connection.
    const firsts = await stage.firsts()
    const [ends, stored] = await Promise.all([stage.ends(), stage.done()])
    const now = clock()
    return progressOf({ stored, firsts, ends }).map(({ place, next, end }) => {
      const ageOf = known.get(place.partition) ?? createAge()
      known.set(place.partition, ageOf)
      return ageOf({ end, done: next, now })
    })
  }
}
