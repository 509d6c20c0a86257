import { setTimeout as delay } from 'node:timers/promises'
import { handOver } from '../hand-over.ts'
import {
  type Batch,
  backoffMs,
  type ConsumeOptions,
  type LogConsumer,
  type LogRecord,
  type Place,
  type Position,
  placeName,
  type ReadOn,
  type Topic,
} from '../port.ts'
import type { Session } from './session.ts'
import type { Limits, Tail } from './tail.ts'

export interface GroupDeps {
  session: Session
  tail: Tail
  partitions: Place[]
}

export interface GroupConsumer extends LogConsumer {
  topics: Topic[]
  wake(): void
}

interface Reading extends Place {
  // The next offset to read; undefined until it is known where to start.
  next: number | undefined
  // Handled and not committed yet.
  uncommitted: number | undefined
  failures: number
  // Not touched before this time (performance.now), after a failure.
  notBefore: number
}

// How long a group without an owner waits at most for a member that stands by.
const standByMs = 1000
// Handled offsets are committed together, at most this often. After a crash that much is delivered again.
const commitEveryMs = 1000
const maxBytes = 4 * 1024 * 1024

/**
 * Consumes for a group while no other process does. One process works for a group at a time, and all of its partitions
 * are handled in one call at a time. Whatever came while the handler ran is the next call.
 */
export function startGroup(
  { session, tail, partitions }: GroupDeps,
  options: ConsumeOptions,
): GroupConsumer {
  const { group, maxRecords = 1000, onError } = options
  const me = Symbol(group)
  const bell = createBell()
  let readings: Reading[] = []
  let generation: number | undefined
  let ahead: { from: string; records: Promise<LogRecord[]> } | undefined
  let isStopping = false
  let failures = 0
  let nextCommit = 0
  const stopped = Promise.withResolvers<void>()
  const finished = run()

  async function run(): Promise<void> {
    while (!isStopping) {
      try {
        const isBusy = await turn()
        failures = 0
        if (!isBusy) await bell.wait(msToWait())
      } catch (error) {
        onError?.(error)
        failures += 1
        // Not ended by the bell: what rings may be what fails.
        await Promise.race([delay(backoffMs(failures), undefined, { ref: false }), stopped.promise])
      }
    }
    await leave().catch((error) => onError?.(error))
  }

  // Returns whether there may be more to do at once.
  async function turn(): Promise<boolean> {
    const owned = await session.own(group, me)
    if (owned !== generation) readings = partitions.map(newReading)
    generation = owned
    if (owned === undefined) return false
    await findStarts()
    const batches = await take()
    if (batches.length > 0) await deal(batches)
    if (performance.now() >= nextCommit) await commit()
    return batches.length > 0
  }

  async function findStarts(): Promise<void> {
    const fresh = readings.filter((reading) => reading.next === undefined && isDue(reading))
    if (fresh.length === 0) return
    const committed = new Map(
      (await session.committed(group)).map((at) => [placeName(at), at.offset]),
    )
    await Promise.all(fresh.map((reading) => findStart(reading, { options, committed })))
  }

  // What has come to the partitions whose turn it is, the one that waited longest first.
  async function take(): Promise<Batch[]> {
    const room = { records: maxRecords, bytes: maxBytes }
    const older: Position[] = []
    const taken: LogRecord[] = []
    for (const reading of readings.filter(isDue)) {
      if (reading.next === undefined || room.records <= 0 || room.bytes <= 0) continue
      const position = { ...placeOf(reading), offset: reading.next }
      const recent = tail.read(position, room)
      if (!recent) older.push(position)
      for (const record of recent ?? []) taken.push(record)
      room.records -= recent?.length ?? 0
      room.bytes -= recent?.reduce((sum, { value }) => sum + value.length, 0) ?? 0
    }
    if (older.length > 0) taken.push(...(await readOlder(older)))
    return [...Map.groupBy(taken, placeName).values()].flatMap(batchOf)
  }

  // What follows is read while these are handled, as a group that is far behind would wait for one and then the other.
  async function readOlder(positions: Position[]): Promise<LogRecord[]> {
    const read = () => session.read(positions, shareOf(positions.length, maxRecords))
    const records = await (ahead?.from === nameOf(positions) ? ahead.records : read()).finally(
      () => {
        ahead = undefined
      },
    )
    const next = positions.map((position) => behind(position, records))
    if (records.length > 0) {
      ahead = { from: nameOf(next), records: session.read(next, shareOf(next.length, maxRecords)) }
      ahead.records.catch(() => {})
    }
    return records
  }

  async function deal(batches: Batch[]): Promise<void> {
    const readOn = await handOver(options, batches)
    for (const batch of batches) settle(batch, readOn.get(placeName(batch)))
  }

  function settle(batch: Batch, chosen: ReadOn | undefined): void {
    const reading = readings.find((one) => placeName(one) === placeName(batch))
    if (!reading) return
    readings = [...readings.filter((one) => one !== reading), reading]
    reading.next = chosen?.offset ?? (batch.records.at(-1)?.offset ?? 0) + 1
    if (!options.keepsNoOffsets) reading.uncommitted = reading.next
    if (chosen?.failed) backOff(reading)
    else reading.failures = 0
  }

  async function commit(): Promise<void> {
    const changed = readings.flatMap((reading): Position[] =>
      reading.uncommitted === undefined
        ? []
        : [{ ...placeOf(reading), offset: reading.uncommitted }],
    )
    if (changed.length === 0) return
    nextCommit = performance.now() + commitEveryMs
    await session.commit(group, changed)
    for (const reading of readings) reading.uncommitted = undefined
  }

  function msToWait(): number {
    const now = performance.now()
    const backOffs = readings.flatMap(({ notBefore }) => (notBefore > now ? [notBefore - now] : []))
    const commits = readings.some(({ uncommitted }) => uncommitted !== undefined)
      ? [nextCommit - now]
      : []
    return Math.max(0, Math.min(standByMs, ...backOffs, ...commits))
  }

  async function leave(): Promise<void> {
    if (generation === undefined) return
    await commit()
    await session.release(group, me)
  }

  return {
    topics: options.topics,
    wake: bell.ring,
    async stop() {
      isStopping = true
      stopped.resolve()
      bell.ring()
      await finished
    },
  }
}

const placeOf = ({ topic, partition }: Place): Place => ({ topic, partition })

const newReading = ({ topic, partition }: Place): Reading => ({
  topic,
  partition,
  next: undefined,
  uncommitted: undefined,
  failures: 0,
  notBefore: 0,
})

function behind(position: Position, records: LogRecord[]): Position {
  const last = records.findLast((record) => placeName(record) === placeName(position))
  return last ? { ...position, offset: last.offset + 1 } : position
}

// In whatever order they come.
const nameOf = (positions: Position[]): string =>
  positions
    .map((position) => `${placeName(position)}/${position.offset}`)
    .sort()
    .join()

const isDue = ({ notBefore }: Reading): boolean => notBefore <= performance.now()

function backOff(reading: Reading): void {
  reading.failures += 1
  reading.notBefore = performance.now() + backoffMs(reading.failures)
}

const shareOf = (partitions: number, records: number): Limits => ({
  records: Math.ceil(records / partitions),
  bytes: Math.ceil(maxBytes / partitions),
})

function batchOf(records: Batch['records']): Batch[] {
  const [first] = records
  return first ? [{ topic: first.topic, partition: first.partition, records }] : []
}

// Where to start: the caller's choice, else the committed offset, else the beginning.
async function findStart(
  reading: Reading,
  { options, committed }: { options: ConsumeOptions; committed: Map<string, number> },
): Promise<void> {
  const { topic, partition } = reading
  try {
    const chosen = await options.startOffset?.(topic, partition)
    reading.next = chosen ?? committed.get(placeName(reading)) ?? 0
    reading.failures = 0
  } catch (error) {
    backOff(reading)
    options.onError?.(error, { topic, partition, offset: 0 })
  }
}

// `ring` ends the wait, or the next one if nobody waits.
function createBell() {
  let isRung = false
  let wake: (() => void) | undefined

  return {
    ring(): void {
      isRung = true
      wake?.()
    },
    async wait(ms: number): Promise<void> {
      if (!isRung) {
        const { promise, resolve } = Promise.withResolvers<void>()
        const timer = setTimeout(resolve, ms)
        wake = resolve
        await promise
        clearTimeout(timer)
      }
      wake = undefined
      isRung = false
    },
  }
}
