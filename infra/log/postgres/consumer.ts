import { setTimeout as delay } from 'node:timers/promises'
import { handOver } from '../hand-over.ts'
import {
  type Batch,
  backoffMs,
  type ConsumeOptions,
  type Linger,
  type LogConsumer,
  type LogRecord,
  type Place,
  type Position,
  placeName,
  type ReadOn,
  type Topic,
} from '../port.ts'
import type { ReadFrom, Session } from './session.ts'

export interface GroupDeps {
  session: Session
  partitions: Place[]
}

export interface GroupConsumer extends LogConsumer {
  /** Records that this process appended, by the names of their places, in order. */
  appended(batches: ReadonlyMap<string, LogRecord[]>): void
  /** There may be new records of the topics. Default: of all. */
  wake(topics?: Topic[]): void
}

// A partition that a group reads. Times are those of performance.now.
interface Reading extends Place {
  // The next offset to read; undefined until it is known where to start.
  next: number | undefined
  // There are records before this offset. Infinity = there may be some.
  end: number
  // There may be a record, or none, behind all that is known.
  mayHaveMore: boolean
  // Records from `next` on that this process appended, which need no statement to be read.
  ahead: LogRecord[]
  // The offset behind all that was read or is ahead; undefined while that is not known.
  aheadEnd: number | undefined
  // Its records wait for others until then; 0 = they don't wait.
  lingerUntil: number
  // Handled and not committed yet.
  uncommitted: number | undefined
  failures: number
  // Not touched before this time, after a failure.
  notBefore: number
}

// By the names of their places.
type Readings = ReadonlyMap<string, Reading>

// How long a group without an owner waits at most for a member that stands by.
const standByMs = 1000
// Handled offsets are committed together, at most this often. After a crash that much is delivered again.
const commitEveryMs = 1000
const maxBytes = 4 * 1024 * 1024
// The most that a group keeps ahead of a partition. More than that is read by a statement.
const maxAhead = { records: 1000, bytes: 1024 * 1024 }

/**
 * Consumes for a group while no other process does. One process works for a group at a time, and all of its partitions
 * are handled in one call at a time. Whatever came while the handler ran is the next call.
 */
export function startGroup(
  { session, partitions }: GroupDeps,
  options: ConsumeOptions,
): GroupConsumer {
  const { group, maxRecords, linger, keepsNoOffsets = false, onError } = options
  const me = Symbol(group)
  const stopping = Promise.withResolvers<void>()
  let woken = Promise.withResolvers<void>()
  let readings = newReadings([])
  let generation: number | undefined
  let isStopping = false
  let failures = 0
  let nextCommit = 0
  const finished = run()

  async function run(): Promise<void> {
    while (!isStopping) {
      try {
        await turn()
        failures = 0
        if (!isStopping && !hasWork()) await wait()
      } catch (error) {
        onError?.(error)
        failures += 1
        for (const reading of readings.values()) readFromLog(reading)
        // Not ended by a wake: what wakes may be what fails.
        const backOffEnds = delay(backoffMs(failures), undefined, { ref: false })
        await Promise.race([backOffEnds, stopping.promise])
      }
    }
    await leave().catch((error) => onError?.(error))
  }

  async function turn(): Promise<void> {
    const owned = await session.own(group, me)
    if (owned !== generation) readings = newReadings(owned === undefined ? [] : partitions)
    generation = owned
    await findStarts(session, readings, options)
    const batches = await readOnce(session, readings, maxRecords)
    if (batches.length > 0) await deal(batches)
    if (performance.now() >= nextCommit) await commit()
  }

  async function deal(batches: Batch[]): Promise<void> {
    const readOn = await handOver(options, batches)
    for (const batch of batches) {
      const reading = readings.get(placeName(batch))
      if (reading) settle(reading, batch, readOn.get(placeName(batch)))
    }
  }

  async function commit(): Promise<void> {
    const changed = keepsNoOffsets ? [] : uncommittedOf(readings)
    if (changed.length === 0) return
    nextCommit = performance.now() + commitEveryMs
    await session.commit(group, changed)
    for (const reading of readings.values()) reading.uncommitted = undefined
  }

  const hasWork = () => [...readings.values()].some(isReady)

  async function wait(): Promise<void> {
    woken = Promise.withResolvers()
    const hasToCommit = !keepsNoOffsets && uncommittedOf(readings).length > 0
    const msToCommit = hasToCommit ? nextCommit - performance.now() : Infinity
    const ms = Math.max(0, Math.min(standByMs, msToCommit, msToReady(readings)))
    const timer = setTimeout(woken.resolve, ms)
    await woken.promise
    clearTimeout(timer)
  }

  async function leave(): Promise<void> {
    if (generation === undefined) return
    await commit()
    await session.release(group, me)
  }

  return {
    appended(batches) {
      for (const [name, records] of batches) {
        const reading = readings.get(name)
        if (!reading) continue
        if (linger) reading.lingerUntil = endOfLinger(reading, records, linger)
        keepAhead(reading, records)
      }
      if (hasWork()) woken.resolve()
    },
    wake(topics = options.topics) {
      for (const reading of readings.values()) {
        if (!topics.includes(reading.topic)) continue
        reading.mayHaveMore = true
        reading.lingerUntil = 0
      }
      if (hasWork()) woken.resolve()
    },
    async stop() {
      isStopping = true
      stopping.resolve()
      woken.resolve()
      await finished
    },
  }
}

async function findStarts(
  session: Session,
  readings: Readings,
  options: ConsumeOptions,
): Promise<void> {
  const fresh = [...readings.values()].filter((one) => one.next === undefined && isDue(one))
  if (fresh.length === 0) return
  const positions = await session.committed(options.group)
  const committed = new Map(positions.map((at) => [placeName(at), at.offset]))
  await Promise.all(fresh.map((reading) => findStart(reading, { options, committed })))
}

// Starts at the caller's choice, else at the committed offset, else at the beginning.
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

// Takes what is ahead, and reads all other partitions that may have records by one statement.
async function readOnce(session: Session, readings: Readings, maxRecords = 1000): Promise<Batch[]> {
  const ready = [...readings.values()].filter(isReady)
  const others = ready.filter((reading) => reading.ahead.length === 0)
  const { batches, room } = takeAhead(ready, maxRecords)
  if (others.length === 0 || room === 0) return batches
  const positions = shareRead(others, room)
  // Before the read: what is appended from now on may be in it, or not.
  for (const reading of others) {
    reading.end = 0
    reading.mayHaveMore = false
    reading.aheadEnd = undefined
  }
  const found = await session.read(positions)
  const read = others.flatMap((reading, i): Batch[] => {
    const { topic, partition } = reading
    const records = found[i] ?? []
    const limits = positions[i]
    reading.aheadEnd = (records.at(-1)?.offset ?? reading.next - 1) + 1
    if (limits && isFull(records, limits)) reading.end = Infinity
    return records.length > 0 ? [{ topic, partition, records }] : []
  })
  return [...batches, ...read]
}

// Returns what was ahead, and how many records more a call may have.
function takeAhead(ready: ReadyReading[], maxRecords: number): { batches: Batch[]; room: number } {
  const batches: Batch[] = []
  let room = maxRecords
  for (const reading of ready) {
    const records = reading.ahead.splice(0, room)
    room -= records.length
    if (records.length > 0)
      batches.push({ topic: reading.topic, partition: reading.partition, records })
  }
  return { batches, room }
}

// The first unread record makes its partition wait, and an urgent one ends that.
function endOfLinger(reading: Reading, records: LogRecord[], linger: Linger): number {
  if (records.some(({ headers }) => linger.urgent.has(headers.event_type ?? ''))) return 0
  const isFirst = reading.ahead.length === 0 && records[0]?.offset === reading.aheadEnd
  return isFirst ? performance.now() + linger.ms : reading.lingerUntil
}

function keepAhead(reading: Reading, records: LogRecord[]): void {
  const [first, last] = [records[0], records.at(-1)]
  if (!first || !last) return
  reading.end = Math.max(reading.end, last.offset + 1)
  // Without what another process appended in between, it is read by a statement.
  if (first.offset !== reading.aheadEnd) return
  const ahead = [...reading.ahead, ...records]
  if (ahead.length > maxAhead.records || bytesOf(ahead) > maxAhead.bytes) return
  reading.ahead = ahead
  reading.aheadEnd = last.offset + 1
}

// There may be any number of records from `next` on.
function readFromLog(reading: Reading): void {
  reading.end = Infinity
  reading.ahead = []
  reading.aheadEnd = undefined
}

function newReadings(places: Place[]): Readings {
  const fresh = {
    next: undefined,
    end: Infinity,
    mayHaveMore: false,
    aheadEnd: undefined,
    lingerUntil: 0,
    uncommitted: undefined,
    failures: 0,
    notBefore: 0,
  }
  return new Map(places.map((place) => [placeName(place), { ...place, ...fresh, ahead: [] }]))
}

const isDue = ({ notBefore }: Reading): boolean => notBefore <= performance.now()

type ReadyReading = Reading & { next: number }

const isReady = (reading: Reading): reading is ReadyReading =>
  reading.next !== undefined &&
  (reading.next < reading.end || reading.mayHaveMore) &&
  isDue(reading) &&
  reading.lingerUntil <= performance.now()

// The partitions that are known to have more than an equal share of one read divide it among them. The others ask for
// that share.
function shareRead(ready: ReadyReading[], maxRecords: number): ReadFrom[] {
  const share = maxRecords / ready.length
  const isLarge = ({ next, end }: ReadyReading) => end - next > share
  const sharers = ready.filter(isLarge).length
  return ready.map((reading) => {
    const parts = isLarge(reading) ? sharers : ready.length
    return {
      topic: reading.topic,
      partition: reading.partition,
      offset: reading.next,
      records: Math.ceil(maxRecords / parts),
      bytes: Math.ceil(maxBytes / parts),
    }
  })
}

// Returns whether the limits may have left some.
const isFull = (records: LogRecord[], limits: ReadFrom): boolean =>
  records.length >= limits.records || bytesOf(records) >= limits.bytes

const bytesOf = (records: LogRecord[]): number =>
  records.reduce((sum, { value }) => sum + value.length, 0)

// Moves behind the records, or to where the handler wants to go on.
function settle(reading: Reading, { records }: Batch, chosen: ReadOn | undefined): void {
  reading.next = chosen?.offset ?? (records.at(-1)?.offset ?? 0) + 1
  reading.uncommitted = reading.next
  if (chosen) readFromLog(reading)
  if (chosen?.failed) backOff(reading)
  else reading.failures = 0
}

function backOff(reading: Reading): void {
  reading.failures += 1
  reading.notBefore = performance.now() + backoffMs(reading.failures)
}

const uncommittedOf = (readings: Readings): Position[] =>
  [...readings.values()].flatMap(({ topic, partition, uncommitted }) =>
    uncommitted === undefined ? [] : [{ topic, partition, offset: uncommitted }],
  )

// Milliseconds until a partition that waits is ready; Infinity = none waits.
function msToReady(readings: Readings): number {
  const now = performance.now()
  const waits = [...readings.values()].flatMap(({ notBefore, lingerUntil }) => [
    notBefore - now,
    lingerUntil - now,
  ])
  return Math.min(Infinity, ...waits.filter((ms) => ms > 0))
}
