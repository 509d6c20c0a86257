import { type Batch, backoffMs, type ConsumeOptions, type LogRecord, type Position } from '../port.ts'
import type { GroupSession, TopicPartition } from './group-session.ts'

export interface AssignedPartitionsOptions {
  session: GroupSession
  options: ConsumeOptions
  signal: WakeUpSignal
  announce: () => Promise<void>
}

/** Handled offsets are committed together, at most this often. After a crash that much is delivered again. */
const commitEveryMs = 250
const maxBatchBytes = 1024 * 1024

export function createAssignedPartitions({ session, options, signal, announce }: AssignedPartitionsOptions) {
  const assigned = new Map<string, AssignedPartition>()
  const { maxRecords = 500, partitionsConcurrently = 3 } = options
  let nextCommit = 0

  const all = () => [...assigned.values()]
  const running = () => all().filter((p) => p.running)

  async function rebalance(): Promise<void> {
    const share = new Set((await session.assignment()).map(nameOf))
    for (const p of all()) p.revoked = !share.has(nameOf(p))
    await releaseRevoked()
    const wanted = [...share].filter((name) => !assigned.has(name)).map(parseName)
    if (wanted.length === 0) return
    for (const p of await session.lock(wanted)) assigned.set(nameOf(p), newlyAssigned(p))
  }

  async function releaseRevoked(): Promise<void> {
    const free = all().filter((p) => p.revoked && !p.running)
    if (free.length === 0) return
    await commit(free)
    for (const p of free) assigned.delete(nameOf(p))
    await session.unlock(free)
    await announce()
  }

  async function commit(some: AssignedPartition[]): Promise<void> {
    const positions = some.flatMap(({ topic, partition, uncommitted }): Position[] =>
      uncommitted === undefined ? [] : [{ topic, partition, offset: uncommitted }],
    )
    if (positions.length === 0) return
    for (const p of some) p.uncommitted = undefined
    nextCommit = performance.now() + commitEveryMs
    await session.commit(positions)
  }

  async function findStarts(): Promise<void> {
    const fresh = all().filter((p) => p.next === undefined && isIdle(p, performance.now()))
    if (fresh.length === 0) return
    const committed = await session.committed(fresh)
    await Promise.all(fresh.map((p) => findStart(p, committed, options)))
  }

  async function read(): Promise<void> {
    const now = performance.now()
    const positions = all().flatMap((p): Position[] =>
      isIdle(p, now) && p.next !== undefined
        ? [{ topic: p.topic, partition: p.partition, offset: p.next }]
        : [],
    )
    if (positions.length === 0) return
    const records = await session.read(positions, { records: maxRecords, bytes: maxBatchBytes })
    for (const record of records) assigned.get(nameOf(record))?.records.push(record)
  }

  function startHandlers(): void {
    for (const p of all()) {
      if (running().length >= partitionsConcurrently) return
      if (p.running || p.revoked || p.records.length === 0) continue
      assigned.delete(nameOf(p))
      assigned.set(nameOf(p), p)
      p.running = handleRecords(p, options).finally(() => {
        p.running = undefined
        signal.notify()
      })
    }
  }

  const handlersDone = async () => {
    await Promise.all(running().map((p) => p.running))
  }

  return {
    rebalance,
    handlersDone,
    async readAndHandle(): Promise<void> {
      await findStarts()
      startHandlers()
      await read()
      startHandlers()
      await releaseRevoked()
      if (performance.now() >= nextCommit) await commit(all())
    },
    msToNextDeadline(): number {
      const now = performance.now()
      const backOffs = all().flatMap((p) => (p.notBefore > now ? [p.notBefore] : []))
      const commits = all().some((p) => p.uncommitted !== undefined) ? [nextCommit] : []
      return Math.max(0, Math.min(...backOffs, ...commits) - now)
    },
    async leave(): Promise<void> {
      await handlersDone()
      await commit(all())
    },
  }
}

const nameOf = ({ topic, partition }: TopicPartition): string => `${topic}/${partition}`

function parseName(name: string): TopicPartition {
  const slash = name.lastIndexOf('/')
  return { topic: name.slice(0, slash), partition: Number(name.slice(slash + 1)) }
}

export interface AssignedPartition extends TopicPartition {
  next: number | undefined
  records: LogRecord[]
  running: Promise<void> | undefined
  revoked: boolean
  failures: number
  /** Not touched before this time (performance.now), after a failure. */
  notBefore: number
  uncommitted: number | undefined
}

export const newlyAssigned = ({ topic, partition }: TopicPartition): AssignedPartition => ({
  topic,
  partition,
  next: undefined,
  records: [],
  running: undefined,
  revoked: false,
  failures: 0,
  notBefore: 0,
  uncommitted: undefined,
})

export const isIdle = (assigned: AssignedPartition, now: number): boolean =>
  !assigned.running && !assigned.revoked && assigned.records.length === 0 && assigned.notBefore <= now

export function backOff(assigned: AssignedPartition): void {
  assigned.failures += 1
  assigned.notBefore = performance.now() + backoffMs(assigned.failures)
}

/** Hands the records to the handler. After a failure they are read again after a back-off. Never rejects. */
export async function handleRecords(
  assigned: AssignedPartition,
  { handleBatch, onError }: ConsumeOptions,
): Promise<void> {
  const { topic, partition, records } = assigned
  const first = records[0]
  const last = records.at(-1)
  if (!first || !last) return
  assigned.records = []
  try {
    const batch: Batch = { topic, partition, records }
    assigned.next = (await handleBatch(batch)) ?? last.offset + 1
    assigned.uncommitted = assigned.next
    assigned.failures = 0
  } catch (error) {
    assigned.next = first.offset
    backOff(assigned)
    onError?.(error, { topic, partition, offset: first.offset })
  }
}

/** Where to start: the caller's choice, else the committed offset, else the beginning. */
export async function findStart(
  assigned: AssignedPartition,
  committed: Position[],
  options: ConsumeOptions,
): Promise<void> {
  const { topic, partition } = assigned
  try {
    const chosen = await options.startOffset?.(topic, partition)
    const known = committed.find((p) => p.topic === topic && p.partition === partition)
    assigned.next = chosen ?? known?.offset ?? 0
    assigned.failures = 0
  } catch (error) {
    backOff(assigned)
    options.onError?.(error, { topic, partition, offset: 0 })
  }
}

/** A signal for one waiter: `notify` ends its wait, or the next one if nobody waits. */
export function createWakeUpSignal() {
  let notified = false
  let wake: (() => void) | undefined

  return {
    notify(): void {
      notified = true
      wake?.()
    },
    async wait(ms: number): Promise<void> {
      if (!notified) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
      wake = undefined
      notified = false
    },
  }
}

export type WakeUpSignal = ReturnType<typeof createWakeUpSignal>
