import { type LogRecord, type Place, type Position, placeName, type Topic } from '../port.ts'

interface Window {
  records: LogRecord[]
  next: number
}

export interface Limits {
  records: number
  bytes: number
}

export interface Tail {
  /** From now on the topic's new records are kept. `ends` is where its partitions end now. */
  open(ends: Position[]): void
  /** Where the kept partitions of the topics end. */
  ends(topics: Topic[]): Position[]
  /** Takes one partition's records, in their order. Returns false where records before them are missing. */
  push(records: LogRecord[]): boolean
  /** Forgets what is kept of the partition, and goes on at the offset. */
  skipTo(next: Position): void
  /** The records from the position on; empty = there are none. undefined = they are older than what is kept. */
  read(from: Position, limits: Limits): LogRecord[] | undefined
}

const defaultMaxBytes = 16 * 1024 * 1024

/** The newest records of the log in memory, so that all groups of a process share one read of them. */
export function createTail({ maxBytes = defaultMaxBytes }: { maxBytes?: number } = {}): Tail {
  const windows = new Map<string, Window & Place>()
  let buffered: { window: Window; record: LogRecord }[] = []
  // The index in `buffered` before which all are forgotten, because taking each off the front would move all others.
  let oldestBuffered = 0
  let bufferedBytes = 0

  const windowOf = (place: Place) => windows.get(placeName(place))

  function forgetOldest(): void {
    while (bufferedBytes > maxBytes) {
      const oldest = buffered[oldestBuffered++]
      if (!oldest) break
      if (oldest.window.records[0] === oldest.record) oldest.window.records.shift()
      bufferedBytes -= oldest.record.value.length
    }
    if (oldestBuffered < 1000) return
    buffered = buffered.slice(oldestBuffered)
    oldestBuffered = 0
  }

  return {
    open(ends) {
      for (const { topic, partition, offset: next } of ends) {
        const name = placeName({ topic, partition })
        if (!windows.has(name)) windows.set(name, { topic, partition, records: [], next })
      }
    },
    ends: (topics) =>
      [...windows.values()].flatMap(({ topic, partition, next: offset }) =>
        topics.includes(topic) ? [{ topic, partition, offset }] : [],
      ),
    push(records) {
      const [first] = records
      const window = first && windowOf(first)
      if (!window) return true
      if (first.offset > window.next) return false
      for (const record of records.filter(({ offset }) => offset >= window.next)) {
        window.records.push(record)
        window.next = record.offset + 1
        buffered.push({ window, record })
        bufferedBytes += record.value.length
      }
      forgetOldest()
      return true
    },
    skipTo(next) {
      const window = windowOf(next)
      if (!window) return
      window.records = []
      window.next = next.offset
    },
    read(from, limits) {
      const window = windowOf(from)
      if (!window) return undefined
      if (from.offset >= window.next) return []
      const [first] = window.records
      if (!first || from.offset < first.offset) return undefined
      return within(window.records.slice(indexOf(window.records, from.offset)), limits)
    },
  }
}

// Where the offset is, or the next one that exists. Gaps only move it towards the front.
function indexOf(records: LogRecord[], offset: number): number {
  let at = Math.min(offset - (records[0]?.offset ?? 0), records.length)
  while (at > 0 && (records[at - 1]?.offset ?? 0) >= offset) at -= 1
  return at
}

// The first records, one at least.
function within(records: LogRecord[], limits: Limits): LogRecord[] {
  let bytes = 0
  const end = records.findIndex(({ value }, i) => {
    bytes += value.length
    return i > 0 && (i >= limits.records || bytes > limits.bytes)
  })
  return end < 0 ? records : records.slice(0, end)
}
