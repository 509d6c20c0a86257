import type pg from 'pg'
import type { Logger } from 'pino'
import { unavailable } from '../errors/errors.ts'
import type { Position } from '../log/port.ts'
import { openListener } from '../postgres/listen.ts'

/** Tracks the next offsets of all projections, over all processes: through NOTIFY, with polling as a fallback. */
export interface AppliedOffsets {
  /**
   * Resolves once the projection has applied the records at `positions`, as returned by `append`. Rejects with 503
   * `service.unavailable` after `timeoutMs` (default 5000).
   */
  waitFor(
    projection: string,
    positions: Position[],
    options?: { timeoutMs?: number },
  ): Promise<void>
  /** Calls `listener` with each new next offset. Returns the function that unsubscribes. */
  onAdvance(projection: string, listener: (next: Position) => void): () => void
  /**
   * Calls `listener` with the ids that the projection changed in any process (`Projection.changedIdsOf`), before
   * `waitFor` resolves for that change. The ids are undefined if notifications may have been lost.
   */
  onChange(projection: string, listener: (changedIds: ChangedIds) => void): () => void
  /** Reports a commit of this process at once, without waiting for its notification. */
  reportCommit(notification: AppliedNotification): void
  close(): Promise<void>
}

export interface AppliedOffsetsOptions {
  url: string
  pool: pg.Pool
  logger: Logger
  /** Milliseconds between polls while `waitFor` is pending, in case a notification was lost. Default 500. */
  pollMs?: number
}

interface Waiter extends Position {
  resolve: () => void
}

/** Listens for the commits of all processes. */
export async function createAppliedOffsets({
  url,
  pool,
  logger,
  pollMs = 500,
}: AppliedOffsetsOptions): Promise<AppliedOffsets> {
  const offsets = createOffsetTracker()
  const advanceListeners = new Map<string, Set<(next: Position) => void>>()
  const changeListeners = new Map<string, Set<(changedIds: ChangedIds) => void>>()

  function receive({ projection, next, changedIds }: AppliedNotification): void {
    if (changedIds?.length !== 0) {
      for (const listener of changeListeners.get(projection) ?? []) listener(changedIds)
    }
    for (const position of next.filter((at) => offsets.advance(projection, at))) {
      for (const listener of advanceListeners.get(projection) ?? []) listener(position)
    }
  }

  async function load(): Promise<void> {
    const { rows } = await pool.query<Position & { projection: string }>(
      `select projection, topic, partition, next_offset::float8 as "offset"
       from tidegate.projection_offsets join tidegate.projection_builds using (projection, build)
       where status = 'live'`,
    )
    for (const { projection, ...next } of rows) {
      // A new offset whose notification has not arrived: any id may have changed.
      const isNew = next.offset > offsets.nextOf(projection, next)
      receive({ projection, next: [next], changedIds: isNew ? undefined : [] })
    }
  }

  const reload = () =>
    load().catch((err) => logger.debug({ err }, 'failed to read projection offsets'))

  const listener = await openListener({
    url,
    logger,
    channels: [appliedChannel],
    onNotification: (_channel, payload) => receive(decodeNotification(payload)),
    // Postgres may have come back without its last commits, so the known offsets may be too high.
    onReconnect() {
      offsets.clear()
      for (const listener of [...changeListeners.values()].flatMap((set) => [...set]))
        listener(undefined)
      void reload()
    },
  })
  await load()
  const poll = setInterval(() => {
    if (offsets.hasWaiters()) void reload()
  }, pollMs)
  poll.unref()

  return {
    reportCommit: receive,
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
    onAdvance: (projection, listener) => subscribe(advanceListeners, { projection, listener }),
    onChange: (projection, listener) => subscribe(changeListeners, { projection, listener }),
    async close() {
      clearInterval(poll)
      await listener.close()
    },
  }
}

function createOffsetTracker() {
  const nextOffsets = new Map<string, number>()
  const waiters = new Map<string, Set<Waiter>>()
  const keyOf = (projection: string, { topic, partition }: Position) =>
    `${projection}|${topic}|${partition}`

  return {
    nextOf: (projection: string, at: Position): number =>
      nextOffsets.get(keyOf(projection, at)) ?? 0,
    /** Raises the next offset and resolves its waiters. Returns false if the offset is not new. */
    advance(projection: string, next: Position): boolean {
      const key = keyOf(projection, next)
      if (next.offset <= (nextOffsets.get(key) ?? 0)) return false
      nextOffsets.set(key, next.offset)
      for (const waiter of waiters.get(key) ?? []) if (waiter.offset < next.offset) waiter.resolve()
      return true
    },
    clear: () => nextOffsets.clear(),
    hasWaiters: () => waiters.size > 0,
    /** Rejects with 503 if the signal is aborted first. */
    waitFor(projection: string, position: Position, signal: AbortSignal): Promise<void> {
      const key = keyOf(projection, position)
      if ((nextOffsets.get(key) ?? 0) > position.offset) return Promise.resolve()
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const waiter = { ...position, resolve }
      const waitersOfKey = waiters.get(key) ?? new Set()
      waiters.set(key, waitersOfKey.add(waiter))
      const { topic, partition, offset } = position
      const timeoutError = new Error(
        `${projection} has not applied ${topic}/${partition} offset ${offset} in time`,
      )
      const onAbort = () => reject(unavailable(timeoutError))
      signal.addEventListener('abort', onAbort, { once: true })
      return promise.finally(() => {
        signal.removeEventListener('abort', onAbort)
        waitersOfKey.delete(waiter)
        if (waitersOfKey.size === 0 && waiters.get(key) === waitersOfKey) waiters.delete(key)
      })
    },
  }
}

function subscribe<T>(
  listeners: Map<string, Set<T>>,
  { projection, listener }: { projection: string; listener: T },
): () => void {
  const projectionListeners = listeners.get(projection) ?? new Set()
  listeners.set(projection, projectionListeners.add(listener))
  return () => projectionListeners.delete(listener)
}

export const appliedChannel = 'tidegate_applied'

/** Ids of the entities that a projection changed. undefined = any may have changed. */
export type ChangedIds = readonly string[] | undefined

export interface AppliedNotification {
  projection: string
  next: Position[]
  changedIds: ChangedIds
}

// A NOTIFY payload is limited to 8000 bytes.
const maxIdsLength = 5000
const maxPositions = 100
const anyId = '*'

/**
 * Returns the NOTIFY payloads: `projection|topic|partitions|next offsets|changed ids`, lists separated by commas. Each
 * has one topic and at most 100 partitions.
 */
export function encodePayloads({ projection, next, changedIds }: AppliedNotification): string[] {
  const ids = changedIds?.join(',') ?? anyId
  const idField = ids.length > maxIdsLength ? anyId : ids
  return [...Map.groupBy(next, ({ topic }) => topic)].flatMap(([topic, positions]) =>
    chunksOf(positions).map((chunk) => {
      const partitions = chunk.map(({ partition }) => partition)
      const offsets = chunk.map(({ offset }) => offset)
      return [projection, topic, partitions.join(','), offsets.join(','), idField].join('|')
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
  const [projection = '', topic = '', partitions = '', offsets = '', ids = anyId] =
    payload.split('|')
  const offsetList = offsets.split(',')
  const next = partitions
    .split(',')
    .map((partition, i) => ({ topic, partition: Number(partition), offset: Number(offsetList[i]) }))
  if (ids === anyId) return { projection, next, changedIds: undefined }
  return { projection, next, changedIds: ids === '' ? [] : ids.split(',') }
}
