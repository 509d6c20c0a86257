import type { PlacedRecord } from './partition.ts'
import type { Position } from './port.ts'

export interface GroupCommitOptions {
  write: (records: PlacedRecord[]) => Promise<Position[]>
  maxRecords: number
  maxBytes: number
}

interface Waiting {
  records: PlacedRecord[]
  bytes: number
  resolve: (positions: Position[]) => void
  reject: (error: unknown) => void
}

/**
 * Appends that arrive while a batch is written form the next batch. One batch at a time keeps their order. A
 * failed batch also fails the waiting appends, so that nobody waits for two time-outs.
 */
export function createGroupCommit({ write, maxRecords, maxBytes }: GroupCommitOptions) {
  let waiting: Waiting[] = []
  let draining: Promise<void> | undefined

  async function drain(): Promise<void> {
    // Appends of the same tick travel together.
    await undefined
    while (waiting.length > 0) {
      const batch = take()
      try {
        settle(batch, await write(batch.flatMap((append) => append.records)))
      } catch (error) {
        for (const append of [...batch, ...waiting.splice(0)]) append.reject(error)
      }
    }
    draining = undefined
  }

  function take(): Waiting[] {
    let records = 0
    let bytes = 0
    const end = waiting.findIndex((append, i) => {
      records += append.records.length
      bytes += append.bytes
      return i > 0 && (records > maxRecords || bytes > maxBytes)
    })
    const batch = end < 0 ? waiting : waiting.slice(0, end)
    waiting = end < 0 ? [] : waiting.slice(end)
    return batch
  }

  function enqueue(records: PlacedRecord[]): Promise<Position[]> {
    const bytes = records.reduce((sum, record) => sum + record.value.length, 0)
    return new Promise((resolve, reject) => {
      waiting.push({ records, bytes, resolve, reject })
      draining ??= drain()
    })
  }

  return {
    async append(records: PlacedRecord[]): Promise<Position[]> {
      // Nearly every append: nothing to split and nothing to put together again.
      if (records.length === 1) return enqueue(records)
      const pieces = split(records, { maxRecords, maxBytes })
      return (await Promise.all(pieces.map(enqueue))).flat()
    },
    idle: async () => draining,
  }
}

function settle(batch: Waiting[], positions: Position[]): void {
  let at = 0
  for (const append of batch) {
    append.resolve(positions.slice(at, at + append.records.length))
    at += append.records.length
  }
}

function split(records: PlacedRecord[], limits: { maxRecords: number; maxBytes: number }): PlacedRecord[][] {
  const pieces: PlacedRecord[][] = []
  let bytes = 0
  for (const record of records) {
    const piece = pieces.at(-1)
    bytes += record.value.length
    if (piece && piece.length < limits.maxRecords && bytes <= limits.maxBytes) piece.push(record)
    else {
      pieces.push([record])
      bytes = record.value.length
    }
  }
  return pieces
}
