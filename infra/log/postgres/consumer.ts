import { setTimeout as delay } from 'node:timers/promises'
import { callHandler } from '../hand-over.ts'
import {
  type Batch,
  backoffMs,
  type ConsumeOptions,
  type Linger,
  type LogConsumer,
  type LogRecord,
  type Position,
  partitionName,
  type ResumePosition,
  type Topic,
  type TopicPartition,
} from '../port.ts'
import type { ReadFrom, Session } from './session.ts'

export interface GroupDeps {
  session: Session
  partitions: TopicPartition[]
}

export interface GroupConsumer extends LogConsumer {
  /** Passes on records that this process appended, in order, by partition name. */
  appended(batches: ReadonlyMap<string, LogRecord[]>): void
  /** Reports that there may be new records of the topics. Default: of all. */
  wake(topics?: Topic[]): void
}

// The read state of a partition. Times are those of performance.now.
interface Reading extends TopicPartition {
  // The next offset to read; undefined until the start offset is found.
  next: number | undefined
  // There are records before this offset. Infinity = there may be.
  end: number
  // There may be a record after all known ones.
  mayHaveMore: boolean
  // Records from `next` on that this process appended, buffered so that no statement is needed to read them.
  buffer: LogRecord[]
  // The offset after all records that were read or buffered; undefined while unknown.
  bufferEnd: number | undefined
  // Its records linger until this time; 0 = they don't.
  lingerUntil: number
  // The next offset after records that were handled but not committed yet.
  uncommitted: number | undefined
  failures: number
  // Backs off until this time after a failure.
  notBefore: number
}

// By partition name.
type Readings = ReadonlyMap<string, Reading>

// Failover: how often a member on standby tries to acquire the group.
const standbyMs = 1000
// Minimum time between commits of handled offsets. A crash delivers the records in between again.
const commitEveryMs = 1000
const maxBytes = 4 * 1024 * 1024
// Limits of a partition's buffer. Records beyond them are read with a statement.
const maxBuffered = { records: 1000, bytes: 1024 * 1024 }

/**
 * Consumes for a group, or stands by while another process owns it. The owner handles all partitions of the group, one
 * call at a time; records that arrive during a call go into the next one.
 */
export function startGroup(
  { session, partitions }: GroupDeps,
  options: ConsumeOptions,
): GroupConsumer {
  const { group, maxRecords, linger, commitsOffsets = true, onError } = options
  const member = Symbol(group)
  const stopping = Promise.withResolvers<void>()
  let wakeUp = Promise.withResolvers<void>()
  let readings = newReadings([])
  let generation: number | undefined
  let isStopping = false
  let failures = 0
  let nextCommit = 0
  const finished = run()

  async function run(): Promise<void> {
    while (!isStopping) {
      try {
        await poll()
        failures = 0
        if (!isStopping && !hasWork()) await wait()
      } catch (error) {
        onError?.(error)
        failures += 1
        for (const reading of readings.values()) readFromLog(reading)
        // `wake` doesn't end the backoff, because the records that it reports may cause the failure.
        const backoff = delay(backoffMs(failures), undefined, { ref: false })
        await Promise.race([backoff, stopping.promise])
      }
    }
    await leave().catch((error) => onError?.(error))
  }

  async function poll(): Promise<void> {
    const acquired = await session.acquire(group, member)
    if (acquired !== generation) readings = newReadings(acquired === undefined ? [] : partitions)
    generation = acquired
    await findStarts(session, readings, options)
    const batches = await readBatches(session, readings, maxRecords)
    if (batches.length > 0) await deliver(batches)
    if (performance.now() >= nextCommit) await commit()
  }

  async function deliver(batches: Batch[]): Promise<void> {
    const resumes = await callHandler(options, batches)
    for (const batch of batches) {
      const reading = readings.get(partitionName(batch))
      if (reading) settle(reading, batch, resumes.get(partitionName(batch)))
    }
  }

  async function commit(): Promise<void> {
    const changed = commitsOffsets ? uncommittedOf(readings) : []
    if (changed.length === 0) return
    nextCommit = performance.now() + commitEveryMs
    await session.commit(group, changed)
    for (const reading of readings.values()) reading.uncommitted = undefined
  }

  const hasWork = () => [...readings.values()].some(isReady)

  async function wait(): Promise<void> {
    wakeUp = Promise.withResolvers()
    const hasToCommit = commitsOffsets && uncommittedOf(readings).length > 0
    const msToCommit = hasToCommit ? nextCommit - performance.now() : Infinity
    const ms = Math.max(0, Math.min(standbyMs, msToCommit, msToReady(readings)))
    const timer = setTimeout(wakeUp.resolve, ms)
    await wakeUp.promise
    clearTimeout(timer)
  }

  async function leave(): Promise<void> {
    if (generation === undefined) return
    await commit()
    await session.release(group, member)
  }

  return {
    appended(batches) {
      for (const [name, records] of batches) {
        const reading = readings.get(name)
        if (!reading) continue
        if (linger) reading.lingerUntil = endOfLinger(reading, records, linger)
        bufferRecords(reading, records)
      }
      if (hasWork()) wakeUp.resolve()
    },
    wake(topics = options.topics) {
      for (const reading of readings.values()) {
        if (!topics.includes(reading.topic)) continue
        reading.mayHaveMore = true
        reading.lingerUntil = 0
      }
      if (hasWork()) wakeUp.resolve()
    },
    async stop() {
      isStopping = true
      stopping.resolve()
      wakeUp.resolve()
      await finished
    },
  }
}

async function findStarts(
  session: Session,
  readings: Readings,
  options: ConsumeOptions,
): Promise<void> {
  const starting = [...readings.values()].filter((r) => r.next === undefined && isDue(r))
  if (starting.length === 0) return
  const positions = await session.committed(options.group)
  const committed = new Map(positions.map((at) => [partitionName(at), at.offset]))
  await Promise.all(starting.map((reading) => findStart(reading, { options, committed })))
}

// Starts at the caller's `startOffset`, else at the committed offset, else at 0.
async function findStart(
  reading: Reading,
  { options, committed }: { options: ConsumeOptions; committed: Map<string, number> },
): Promise<void> {
  const { topic, partition } = reading
  try {
    const startOffset = await options.startOffset?.(topic, partition)
    reading.next = startOffset ?? committed.get(partitionName(reading)) ?? 0
    reading.failures = 0
  } catch (error) {
    backOff(reading)
    options.onError?.(error, { topic, partition, offset: 0 })
  }
}

// Takes buffered records, and reads all other partitions that may have records with a single statement.
async function readBatches(
  session: Session,
  readings: Readings,
  maxRecords = 1000,
): Promise<Batch[]> {
  const ready = [...readings.values()].filter(isReady)
  const unbuffered = ready.filter((reading) => reading.buffer.length === 0)
  const { batches, room } = takeBuffered(ready, maxRecords)
  if (unbuffered.length === 0 || room === 0) return batches
  const reads = shareRead(unbuffered, room)
  // Reset before the read, which may or may not see records appended from now on.
  for (const reading of unbuffered) {
    reading.end = 0
    reading.mayHaveMore = false
    reading.bufferEnd = undefined
  }
  const results = await session.read(reads)
  const fromLog = unbuffered.flatMap((reading, i): Batch[] => {
    const { topic, partition } = reading
    const records = results[i] ?? []
    const limits = reads[i]
    reading.bufferEnd = (records.at(-1)?.offset ?? reading.next - 1) + 1
    if (limits && isFull(records, limits)) reading.end = Infinity
    return records.length > 0 ? [{ topic, partition, records }] : []
  })
  return [...batches, ...fromLog]
}

// Returns buffered records, and how many more records the call may have.
function takeBuffered(
  ready: ReadyReading[],
  maxRecords: number,
): { batches: Batch[]; room: number } {
  const batches: Batch[] = []
  let room = maxRecords
  for (const reading of ready) {
    const records = reading.buffer.splice(0, room)
    room -= records.length
    if (records.length > 0)
      batches.push({ topic: reading.topic, partition: reading.partition, records })
  }
  return { batches, room }
}

// Returns the end of the linger: it starts with the first unread record, and an urgent one ends it.
function endOfLinger(reading: Reading, records: LogRecord[], linger: Linger): number {
  if (records.some(({ headers }) => linger.urgent.has(headers.event_type ?? ''))) return 0
  const isFirst = reading.buffer.length === 0 && records[0]?.offset === reading.bufferEnd
  return isFirst ? performance.now() + linger.ms : reading.lingerUntil
}

function bufferRecords(reading: Reading, records: LogRecord[]): void {
  const [first, last] = [records[0], records.at(-1)]
  if (!first || !last) return
  reading.end = Math.max(reading.end, last.offset + 1)
  // A gap means that another process appended in between, so a statement must read the records.
  if (first.offset !== reading.bufferEnd) return
  const buffer = [...reading.buffer, ...records]
  if (buffer.length > maxBuffered.records || bytesOf(buffer) > maxBuffered.bytes) return
  reading.buffer = buffer
  reading.bufferEnd = last.offset + 1
}

// Drops the buffer, so that the partition is read with a statement from `next` on.
function readFromLog(reading: Reading): void {
  reading.end = Infinity
  reading.buffer = []
  reading.bufferEnd = undefined
}

function newReadings(partitions: TopicPartition[]): Readings {
  const initial = {
    next: undefined,
    end: Infinity,
    mayHaveMore: false,
    bufferEnd: undefined,
    lingerUntil: 0,
    uncommitted: undefined,
    failures: 0,
    notBefore: 0,
  }
  return new Map(partitions.map((at) => [partitionName(at), { ...at, ...initial, buffer: [] }]))
}

const isDue = ({ notBefore }: Reading): boolean => notBefore <= performance.now()

type ReadyReading = Reading & { next: number }

const isReady = (reading: Reading): reading is ReadyReading =>
  reading.next !== undefined &&
  (reading.next < reading.end || reading.mayHaveMore) &&
  isDue(reading) &&
  reading.lingerUntil <= performance.now()

// Splits a read among partitions. Those known to have more than an equal share divide the whole read among themselves;
// the others are expected to have little and request an equal share.
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

// Returns true if the limits may have cut off records.
const isFull = (records: LogRecord[], limits: ReadFrom): boolean =>
  records.length >= limits.records || bytesOf(records) >= limits.bytes

const bytesOf = (records: LogRecord[]): number =>
  records.reduce((sum, { value }) => sum + value.length, 0)

// Advances past the records, or to the position where the handler wants to resume.
function settle(reading: Reading, { records }: Batch, resume: ResumePosition | undefined): void {
  reading.next = resume?.offset ?? (records.at(-1)?.offset ?? 0) + 1
  reading.uncommitted = reading.next
  if (resume) readFromLog(reading)
  if (resume?.failed) backOff(reading)
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

// Returns the milliseconds until the next backoff or linger ends; Infinity if there is none.
function msToReady(readings: Readings): number {
  const now = performance.now()
  const waits = [...readings.values()].flatMap(({ notBefore, lingerUntil }) => [
    notBefore - now,
    lingerUntil - now,
  ])
  return Math.min(Infinity, ...waits.filter((ms) => ms > 0))
}
