export interface GroupCommitOptions<Item, Answer> {
  /** Gives an answer for each of the records, in their order. */
  write: (records: Item[]) => Promise<Answer[]>
  maxRecords: number
  maxBytes?: number
  bytesOf?: (record: Item) => number
}

type Limits<Item> = Required<Omit<GroupCommitOptions<Item, never>, 'write'>>

interface Waiting<Item, Answer> {
  records: Item[]
  bytes: number
  resolve: (answers: Answer[]) => void
  reject: (error: unknown) => void
}

/**
 * Appends that arrive while a batch is written form the next batch. One batch at a time keeps their order. A
 * failed batch also fails the waiting appends, so that nobody waits for two time-outs.
 */
export function createGroupCommit<Item, Answer>({
  write,
  maxRecords,
  maxBytes = Number.POSITIVE_INFINITY,
  bytesOf = () => 0,
}: GroupCommitOptions<Item, Answer>) {
  const limits = { maxRecords, maxBytes, bytesOf }
  let waiting: Waiting<Item, Answer>[] = []
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

  function take(): Waiting<Item, Answer>[] {
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

  function enqueue(records: Item[]): Promise<Answer[]> {
    const bytes = records.reduce((sum, record) => sum + bytesOf(record), 0)
    return new Promise((resolve, reject) => {
      waiting.push({ records, bytes, resolve, reject })
      draining ??= drain()
    })
  }

  return {
    async append(records: Item[]): Promise<Answer[]> {
      // Nearly every append: nothing to split and nothing to put together again.
      if (records.length === 1) return enqueue(records)
      const pieces = split(records, limits)
      return (await Promise.all(pieces.map(enqueue))).flat()
    },
    idle: async () => draining,
  }
}

function settle<Item, Answer>(batch: Waiting<Item, Answer>[], answers: Answer[]): void {
  let at = 0
  for (const append of batch) {
    append.resolve(answers.slice(at, at + append.records.length))
    at += append.records.length
  }
}

function split<Item>(records: Item[], { maxRecords, maxBytes, bytesOf }: Limits<Item>): Item[][] {
  const pieces: Item[][] = []
  let bytes = 0
  for (const record of records) {
    const piece = pieces.at(-1)
    bytes += bytesOf(record)
    if (piece && piece.length < maxRecords && bytes <= maxBytes) piece.push(record)
    else {
      pieces.push([record])
      bytes = bytesOf(record)
    }
  }
  return pieces
}
