import type pg from 'pg'
import type { Logger } from 'pino'
import { unavailable } from '../errors/errors.ts'
import type { Position } from '../log/port.ts'
import { openListener } from '../postgres/listen.ts'

export interface Applied {
  /**
   * Resolves when the projection has applied the records at `positions` (what `append` returned).
   * Rejects with ApiError service.unavailable after `timeoutMs` (default 5000).
   */
  waitFor(
    projection: string,
    positions: Position[],
    options?: { timeoutMs?: number },
  ): Promise<void>
  onAdvance(projection: string, listener: (next: Position) => void): () => void
  /**
   * Calls `listener` with the ids of what a projection has changed (see Projection.subjectsOf), in whichever
   * process it did. The ids are undefined when notifications may have been lost. Whoever waits for the change
   * goes on only after that.
   */
  onChange(projection: string, listener: (subjects: Subjects) => void): () => void
  advance(notification: AppliedNotification): void
  close(): Promise<void>
}

export interface AppliedOptions {
  url: string
  pool: pg.Pool
  logger: Logger
  /**
   * Milliseconds between looks into Postgres while somebody waits, in case a notification was lost. Default
   * 500.
   */
  pollMs?: number
}

interface Waiter extends Position {
  resolve: () => void
}

/**
 * Listens for the commits of runners everywhere. Runners of its own process tell it without the way through
 * Postgres.
 */
export async function createApplied({
  url,
  pool,
  logger,
  pollMs = 500,
}: AppliedOptions): Promise<Applied> {
  const offsets = createOffsets()
  const listeners = new Map<string, Set<(next: Position) => void>>()
  const changeListeners = new Map<string, Set<(subjects: Subjects) => void>>()

  function receive({ projection, next, subjects }: AppliedNotification): void {
    if (subjects?.length !== 0) {
      for (const listener of changeListeners.get(projection) ?? []) listener(subjects)
    }
    for (const position of next.filter((one) => offsets.advance(projection, one))) {
      for (const listener of listeners.get(projection) ?? []) listener(position)
    }
  }

  async function load(): Promise<void> {
    const { rows } = await pool.query<Position & { projection: string }>(
      `select projection, topic, partition, next_offset::float8 as "offset"
       from tidegate.projection_offsets join tidegate.projection_builds using (projection, build)
       where status = 'live'`,
    )
    for (const { projection, ...next } of rows) {
      // Its notification has yet to come, with ids that are not known here.
      const isNew = next.offset > offsets.known(projection, next)
      receive({ projection, next: [next], subjects: isNew ? undefined : [] })
    }
  }

  const reload = () =>
    load().catch((err) => logger.debug({ err }, 'offsets of projections not read'))

  const listener = await openListener({
    url,
    logger,
    channels: [appliedChannel],
    onNotification: (_channel, payload) => receive(decodeNotification(payload)),
    // Postgres may have come back without its last commits, so what was known is forgotten.
    onReconnect() {
      offsets.forget()
      for (const some of changeListeners.values()) for (const listener of some) listener(undefined)
      void reload()
    },
  })
  await load()
  const poll = setInterval(() => {
    if (offsets.isAwaited()) void reload()
  }, pollMs)
  poll.unref()

  return {
    advance: receive,
    async waitFor(projection, positions, { timeoutMs = 5000 } = {}) {
      const timeout = new AbortController()
      const timer = setTimeout(() => timeout.abort(), timeoutMs)
      try {
        await Promise.all(
          positions.map((position) => offsets.waitFor(projection, position, timeout.signal)),
        )
      } finally {
        clearTimeout(timer)
      }
    },
    onAdvance: (projection, listener) => subscribe(listeners, { projection, listener }),
    onChange: (projection, listener) => subscribe(changeListeners, { projection, listener }),
    async close() {
      clearInterval(poll)
      await listener.close()
    },
  }
}

/** The next offsets of projections, and who waits for them. */
function createOffsets() {
  const known = new Map<string, number>()
  const waiters = new Map<string, Set<Waiter>>()
  const keyOf = (projection: string, { topic, partition }: Position) =>
    `${projection}|${topic}|${partition}`

  return {
    known: (projection: string, at: Position): number => known.get(keyOf(projection, at)) ?? 0,
    /** Returns false where as much was known already. */
    advance(projection: string, next: Position): boolean {
      const key = keyOf(projection, next)
      if (next.offset <= (known.get(key) ?? 0)) return false
      known.set(key, next.offset)
      for (const waiter of waiters.get(key) ?? []) if (waiter.offset < next.offset) waiter.resolve()
      return true
    },
    forget: () => known.clear(),
    isAwaited: () => waiters.size > 0,
    /** Rejects with 503 when the signal is aborted first. */
    waitFor(projection: string, position: Position, signal: AbortSignal): Promise<void> {
      const key = keyOf(projection, position)
      if ((known.get(key) ?? 0) > position.offset) return Promise.resolve()
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const waiter = { ...position, resolve }
      const mine = waiters.get(key) ?? new Set()
      waiters.set(key, mine.add(waiter))
      const { topic, partition, offset } = position
      const late = new Error(
        `${projection} has not applied ${topic}/${partition} offset ${offset} in time`,
      )
      const onAbort = () => reject(unavailable(late))
      signal.addEventListener('abort', onAbort, { once: true })
      return promise.finally(() => {
        signal.removeEventListener('abort', onAbort)
        mine.delete(waiter)
        if (mine.size === 0 && waiters.get(key) === mine) waiters.delete(key)
      })
    },
  }
}

function subscribe<T>(
  all: Map<string, Set<T>>,
  { projection, listener }: { projection: string; listener: T },
): () => void {
  const mine = all.get(projection) ?? new Set()
  all.set(projection, mine.add(listener))
  return () => mine.delete(listener)
}

export const appliedChannel = 'tidegate_applied'

export type Subjects = readonly string[] | undefined

export interface AppliedNotification {
  projection: string
  /** Where partitions go on now. */
  next: Position[]
  subjects: Subjects
}

// A notification of Postgres holds 8000 bytes.
const maxSubjectsLength = 5000
const maxPositions = 100
const anything = '*'

/**
 * The payloads of notifications: `projection|topic|partitions|next offsets|subjects`, lists separated by commas. There
 * is one for each topic, and more for very many partitions.
 */
export function encodeNotifications({ projection, next, subjects }: AppliedNotification): string[] {
  const ids = subjects?.join(',') ?? anything
  const last = ids.length > maxSubjectsLength ? anything : ids
  return [...Map.groupBy(next, ({ topic }) => topic)].flatMap(([topic, positions]) =>
    chunksOf(positions).map((some) => {
      const partitions = some.map(({ partition }) => partition)
      const offsets = some.map(({ offset }) => offset)
      return [projection, topic, partitions.join(','), offsets.join(','), last].join('|')
    }),
  )
}

function chunksOf(positions: Position[]): Position[][] {
  const starts = Array.from(
    { length: Math.ceil(positions.length / maxPositions) },
    (_, i) => i * maxPositions,
  )
  return starts.map((start) => positions.slice(start, start + maxPositions))
}

export function decodeNotification(payload: string): AppliedNotification {
  const [projection = '', topic = '', partitions = '', offsets = '', ids = anything] =
    payload.split('|')
  const ends = offsets.split(',')
  const next = partitions
    .split(',')
    .map((partition, i) => ({ topic, partition: Number(partition), offset: Number(ends[i]) }))
  if (ids === anything) return { projection, next, subjects: undefined }
  return { projection, next, subjects: ids === '' ? [] : ids.split(',') }
}
