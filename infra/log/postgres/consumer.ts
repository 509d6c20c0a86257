import { setTimeout as delay } from 'node:timers/promises'
import { callHandler } from '../call-handler.ts'
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
import type { ConsumerConnection, ReadRequest } from './consumer-connection.ts'

export interface GroupDeps {
  connection: ConsumerConnection
  partitions: TopicPartition[]
}

export interface GroupConsumer extends LogConsumer {
  /** Buffers records that this process appended, in order, by partition name. */
  bufferAppended(batches: ReadonlyMap<string, LogRecord[]>): void
  /** Reports that the topics may have new records. Default: all topics. */
  wake(topics?: Topic[]): void
}

// The read state of a partition. Times are in milliseconds, as returned by performance.now.
interface ReadState extends TopicPartition {
  // The next offset to read; undefined until the start offset is found.
  next: number | undefined
  // Records are known to exist before this offset. Infinity = unknown.
  end: number
  // There may be records beyond the known ones.
  mayHaveMore: boolean
  // Records from `next` on that this process appended, which need not be read from Postgres.
  buffer: LogRecord[]
  // The offset after all records that were read or buffered; undefined while unknown.
  bufferEnd: number | undefined
  // Records linger until this time. 0 = they don't.
  lingerUntil: number
  // The next offset after records that were handled but not committed yet.
  uncommitted: number | undefined
  failures: number
  // After a failure, the partition isn't read before this time.
  backoffUntil: number
}

// By partition name.
type ReadStates = ReadonlyMap<string, ReadState>

// Interval at which a standby member tries to acquire the group.
const standbyMs = 1000
// Minimum time between commits of handled offsets. After a crash, records since the last commit are delivered again.
const commitEveryMs = 1000
const maxBytes = 4 * 1024 * 1024
// Limits of a partition's buffer. Records beyond them are read from Postgres.
const maxBuffered = { records: 1000, bytes: 1024 * 1024 }

/**
 * Consumes for a group, or stands by while another process owns it. The owner handles all partitions of the group, one
 * call at a time; records that arrive during a call go into the next one.
 */
export function startGroupConsumer(
  { connection, partitions }: GroupDeps,
  options: ConsumeOptions,
): GroupConsumer {
  const { group, maxRecords, linger, commitsOffsets = true, onError } = options
  const member = Symbol(group)
  const stopping = Promise.withResolvers<void>()
  let wakeUp = Promise.withResolvers<void>()
  let states = newStates([])
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
        for (const state of states.values()) discardBuffer(state)
        // `wake` doesn't end the backoff, because the records that it reports may have caused the failure.
        const backoff = delay(backoffMs(failures), undefined, { ref: false })
        await Promise.race([backoff, stopping.promise])
      }
    }
    await leave().catch((error) => onError?.(error))
  }

  async function poll(): Promise<void> {
    const acquired = await connection.acquire(group, member)
    if (acquired !== generation) states = newStates(acquired === undefined ? [] : partitions)
    generation = acquired
    await findStartOffsets(connection, states, options)
    const batches = await readBatches(connection, states, maxRecords)
    if (batches.length > 0) await deliver(batches)
    if (performance.now() >= nextCommit) await commit()
  }

  async function deliver(batches: Batch[]): Promise<void> {
    const resumes = await callHandler(options, batches)
    for (const batch of batches) {
      const state = states.get(partitionName(batch))
      if (state) advance(state, batch, resumes.get(partitionName(batch)))
    }
  }

  async function commit(): Promise<void> {
    const changed = commitsOffsets ? uncommittedOf(states) : []
    if (changed.length === 0) return
    nextCommit = performance.now() + commitEveryMs
    await connection.commit(group, changed)
    for (const state of states.values()) state.uncommitted = undefined
  }

  const hasWork = () => [...states.values()].some(isReady)

  async function wait(): Promise<void> {
    wakeUp = Promise.withResolvers()
    const hasToCommit = commitsOffsets && uncommittedOf(states).length > 0
    const msUntilCommit = hasToCommit ? nextCommit - performance.now() : Infinity
    const ms = Math.max(0, Math.min(standbyMs, msUntilCommit, msUntilReady(states)))
    const timer = setTimeout(wakeUp.resolve, ms)
    await wakeUp.promise
    clearTimeout(timer)
  }

  async function leave(): Promise<void> {
    if (generation === undefined) return
    await commit()
    await connection.release(group, member)
  }

  return {
    bufferAppended(batches) {
      for (const [name, records] of batches) {
        const state = states.get(name)
        if (!state) continue
        if (linger) state.lingerUntil = lingerEnd(state, records, linger)
        bufferRecords(state, records)
      }
      if (hasWork()) wakeUp.resolve()
    },
    wake(topics = options.topics) {
      for (const state of states.values()) {
        if (!topics.includes(state.topic)) continue
        state.mayHaveMore = true
        state.lingerUntil = 0
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

async function findStartOffsets(
  connection: ConsumerConnection,
  states: ReadStates,
  options: ConsumeOptions,
): Promise<void> {
  const unstarted = [...states.values()].filter((r) => r.next === undefined && isBackoffOver(r))
  if (unstarted.length === 0) return
  const positions = await connection.committedPositions(options.group)
  const committed = new Map(positions.map((at) => [partitionName(at), at.offset]))
  await Promise.all(unstarted.map((state) => findStartOffset(state, { options, committed })))
}

// Starts at the caller's `startOffset`, else at the committed offset, else at 0.
async function findStartOffset(
  state: ReadState,
  { options, committed }: { options: ConsumeOptions; committed: Map<string, number> },
): Promise<void> {
  const { topic, partition } = state
  try {
    const startOffset = await options.startOffset?.(topic, partition)
    state.next = startOffset ?? committed.get(partitionName(state)) ?? 0
    state.failures = 0
  } catch (error) {
    backOff(state)
    options.onError?.(error, { topic, partition, offset: 0 })
  }
}

// Returns buffered records, and those of all other ready partitions, which a single statement reads.
async function readBatches(
  connection: ConsumerConnection,
  states: ReadStates,
  maxRecords = 1000,
): Promise<Batch[]> {
  const ready = [...states.values()].filter(isReady)
  const unbuffered = ready.filter((state) => state.buffer.length === 0)
  const { batches, room } = takeBuffered(ready, maxRecords)
  if (unbuffered.length === 0 || room === 0) return batches
  const reads = splitRead(unbuffered, room)
  // Reset before the read, which may or may not see records that are appended from now on.
  for (const state of unbuffered) {
    state.end = 0
    state.mayHaveMore = false
    state.bufferEnd = undefined
  }
  const results = await connection.read(reads)
  const fromLog = unbuffered.flatMap((state, i): Batch[] => {
    const { topic, partition } = state
    const records = results[i] ?? []
    const limits = reads[i]
    state.bufferEnd = (records.at(-1)?.offset ?? state.next - 1) + 1
    if (limits && isFull(records, limits)) state.end = Infinity
    return records.length > 0 ? [{ topic, partition, records }] : []
  })
  return [...batches, ...fromLog]
}

// Returns buffered records, and how many more the batch may have.
function takeBuffered(ready: ReadyState[], maxRecords: number): { batches: Batch[]; room: number } {
  const batches: Batch[] = []
  let room = maxRecords
  for (const state of ready) {
    const records = state.buffer.splice(0, room)
    room -= records.length
    if (records.length > 0)
      batches.push({ topic: state.topic, partition: state.partition, records })
  }
  return { batches, room }
}

// Returns the time at which the linger ends. It starts with the first unread record; an urgent record ends it.
function lingerEnd(state: ReadState, records: LogRecord[], linger: Linger): number {
  if (records.some(({ headers }) => linger.urgent.has(headers.event_type ?? ''))) return 0
  const isFirst = state.buffer.length === 0 && records[0]?.offset === state.bufferEnd
  return isFirst ? performance.now() + linger.ms : state.lingerUntil
}

function bufferRecords(state: ReadState, records: LogRecord[]): void {
  const [first, last] = [records[0], records.at(-1)]
  if (!first || !last) return
  state.end = Math.max(state.end, last.offset + 1)
  // After a gap, another process has appended in between, so the records must be read from Postgres.
  if (first.offset !== state.bufferEnd) return
  const buffer = [...state.buffer, ...records]
  if (buffer.length > maxBuffered.records || bytesOf(buffer) > maxBuffered.bytes) return
  state.buffer = buffer
  state.bufferEnd = last.offset + 1
}

// Discards the buffer, so that the records from `next` on are read from Postgres.
function discardBuffer(state: ReadState): void {
  state.end = Infinity
  state.buffer = []
  state.bufferEnd = undefined
}

function newStates(partitions: TopicPartition[]): ReadStates {
  const initial = {
    next: undefined,
    end: Infinity,
    mayHaveMore: false,
    bufferEnd: undefined,
    lingerUntil: 0,
    uncommitted: undefined,
    failures: 0,
    backoffUntil: 0,
  }
  return new Map(partitions.map((at) => [partitionName(at), { ...at, ...initial, buffer: [] }]))
}

const isBackoffOver = ({ backoffUntil }: ReadState): boolean => backoffUntil <= performance.now()

type ReadyState = ReadState & { next: number }

const isReady = (state: ReadState): state is ReadyState =>
  state.next !== undefined &&
  (state.next < state.end || state.mayHaveMore) &&
  isBackoffOver(state) &&
  state.lingerUntil <= performance.now()

// Splits the limits of a read among partitions. Partitions known to have more than an equal share split the whole
// limits among themselves, because the others are expected to have less than the equal share that they request.
function splitRead(ready: ReadyState[], maxRecords: number): ReadRequest[] {
  const share = maxRecords / ready.length
  const isLarge = ({ next, end }: ReadyState) => end - next > share
  const largeCount = ready.filter(isLarge).length
  return ready.map((state) => {
    const parts = isLarge(state) ? largeCount : ready.length
    return {
      topic: state.topic,
      partition: state.partition,
      offset: state.next,
      records: Math.ceil(maxRecords / parts),
      bytes: Math.ceil(maxBytes / parts),
    }
  })
}

// Returns true if the limits may have left out records.
const isFull = (records: LogRecord[], limits: ReadRequest): boolean =>
  records.length >= limits.records || bytesOf(records) >= limits.bytes

const bytesOf = (records: LogRecord[]): number =>
  records.reduce((sum, { value }) => sum + value.length, 0)

// Advances past the records, or to the position at which the handler wants to resume.
function advance(state: ReadState, { records }: Batch, resume: ResumePosition | undefined): void {
  state.next = resume?.offset ?? (records.at(-1)?.offset ?? 0) + 1
  state.uncommitted = state.next
  if (resume) discardBuffer(state)
  if (resume?.failed) backOff(state)
  else state.failures = 0
}

function backOff(state: ReadState): void {
  state.failures += 1
  state.backoffUntil = performance.now() + backoffMs(state.failures)
}

const uncommittedOf = (states: ReadStates): Position[] =>
  [...states.values()].flatMap(({ topic, partition, uncommitted }) =>
    uncommitted === undefined ? [] : [{ topic, partition, offset: uncommitted }],
  )

// Returns the milliseconds until the next backoff or linger ends; Infinity if there is none.
function msUntilReady(states: ReadStates): number {
  const now = performance.now()
  const waits = [...states.values()].flatMap(({ backoffUntil, lingerUntil }) => [
    backoffUntil - now,
    lingerUntil - now,
  ])
  return Math.min(Infinity, ...waits.filter((ms) => ms > 0))
}
