import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import type { Logger } from 'pino'
import { type Listener, openListener } from '../../postgres/listen.ts'
import { type LogRecord, type Position, placeName, type Topic } from '../port.ts'
import type { GroupConsumer } from './consumer.ts'
import { countConsumers, type Session } from './session.ts'
import type { Tail } from './tail.ts'

export interface FeedOptions {
  pool: pg.Pool
  url: string
  schema: string
  logger: Logger
  session: Session
  tail: Tail
}

// Bounds the delay after a lost notification.
const pollMs = 1000
// What is fetched of one partition at once. A group that is further behind reads for itself.
const maxFetched = { records: 1000, bytes: 1024 * 1024 }

/**
 * Keeps the tail up to date, and wakes the groups of this process. What this process appends comes from its own memory.
 * NOTIFY says what others append, and that is fetched once for all groups.
 */
export function createFeed({ pool, url, schema, logger, session, tail }: FeedOptions) {
  const channel = `${schema}_wake`
  const me = randomUUID().slice(0, 8)
  const consumers = new Set<GroupConsumer>()
  const toFetch = new Set<Topic>()
  const toNotify = new Set<Topic>()
  let fetching: Promise<void> | undefined
  let notifying: Promise<void> | undefined
  let listener: Promise<Listener> | undefined

  function wake(topics: Topic[]): void {
    for (const consumer of consumers)
      if (consumer.topics.some((topic) => topics.includes(topic))) consumer.wake()
  }

  function fetch(topics: Iterable<Topic>): Promise<void> {
    for (const topic of topics) toFetch.add(topic)
    fetching ??= fetchAll().finally(() => {
      fetching = undefined
    })
    return fetching
  }

  async function fetchAll(): Promise<void> {
    while (toFetch.size > 0) {
      const topics = [...toFetch]
      toFetch.clear()
      // The poll fetches what a lost connection held up.
      await fetchNew(topics).catch((err) =>
        logger.debug({ err }, 'new records of the log not fetched'),
      )
    }
  }

  async function fetchNew(topics: Topic[]): Promise<void> {
    const known = tail.ends(topics)
    const ends = new Map((await session.ends(topics)).map((end) => [placeName(end), end.offset]))
    const endOf = (place: Position) => ends.get(placeName(place)) ?? place.offset
    const moved = known.filter((position) => endOf(position) > position.offset)
    const isFar = (position: Position) => endOf(position) - position.offset > maxFetched.records
    for (const position of moved.filter(isFar))
      tail.skipTo({ ...position, offset: endOf(position) })
    const near = moved.filter((position) => !isFar(position))
    if (near.length > 0) {
      const batches = Map.groupBy(await session.read(near, maxFetched), placeName)
      for (const position of near)
        take(batches.get(placeName(position)) ?? [], { position, end: endOf(position) })
    }
    if (moved.length > 0) wake(topics)
  }

  function skip(position: Position, end: number): void {
    const known = tail
      .ends([position.topic])
      .find(({ partition }) => partition === position.partition)
    // Unless own records have come behind them meanwhile.
    if (known?.offset === position.offset) tail.skipTo({ ...position, offset: end })
  }

  // What the database had from the position to the end. Records that are missing in it have expired.
  function take(
    records: LogRecord[],
    { position, end }: { position: Position; end: number },
  ): void {
    const [first, last] = [records[0], records.at(-1)]
    if (!first || !last) {
      skip(position, end)
      return
    }
    if (!tail.push(records)) {
      tail.skipTo(first)
      tail.push(records)
    }
    // The limits may have left some.
    if (last.offset + 1 < end) toFetch.add(position.topic)
  }

  const poll = setInterval(() => {
    const topics = [...consumers].flatMap((consumer) => consumer.topics)
    if (topics.length > 0) void fetch(topics)
  }, pollMs)
  poll.unref()

  function listen(): Promise<Listener> {
    const onNotification = (_: string, payload: string) => {
      const [sender, ...topics] = payload.split(' ')
      if (sender !== me) void fetch(topics)
    }
    const opening = openListener({ url, channels: [channel], onNotification, logger })
    opening.catch(() => {
      listener = undefined
    })
    return opening
  }

  function notify(topics: Iterable<Topic>): void {
    for (const topic of topics) toNotify.add(topic)
    notifying ??= notifyAll().finally(() => {
      notifying = undefined
    })
  }

  async function notifyAll(): Promise<void> {
    while (toNotify.size > 0) {
      const payload = [me, ...toNotify].join(' ')
      toNotify.clear()
      // Not in the append: commits that notify wait for one another's disk flush.
      await pool.query('select pg_notify($1, $2)', [channel, payload]).catch(() => {})
    }
  }

  const others = createOthers({ pool, schema, session })

  return {
    /** Records of this process, in the order of their partitions. */
    appended(records: LogRecord[]): void {
      const topics = new Set(records.map(({ topic }) => topic))
      const gaps = [...Map.groupBy(records, placeName).values()].filter((some) => !tail.push(some))
      if (gaps.length > 0) void fetch(gaps.flatMap(([first]) => first?.topic ?? []))
      wake([...topics])
      if (others.listen()) notify(topics)
    },
    /** Must resolve before a consumer reads for the first time. */
    async open(topics: Topic[]): Promise<void> {
      listener ??= listen()
      await listener
      tail.open(await session.ends(topics))
    },
    add: (consumer: GroupConsumer) => void consumers.add(consumer),
    remove: (consumer: GroupConsumer) => void consumers.delete(consumer),
    wakeAll() {
      for (const consumer of consumers) consumer.wake()
    },
    async close(): Promise<void> {
      clearInterval(poll)
      await Promise.all([fetching, notifying])
      await (await listener?.catch(() => undefined))?.close()
    },
  }
}

const pollEveryMs = 1000

// Whether processes besides this one may listen. Asked at most once a second: one that has begun meanwhile finds the
// records by its own poll.
function createOthers({ pool, schema, session }: Pick<FeedOptions, 'pool' | 'schema' | 'session'>) {
  let areThere = true
  let nextPoll = 0

  async function poll(): Promise<void> {
    areThere = (await countConsumers(pool, schema)) > (session.isOpen() ? 1 : 0)
  }

  return {
    listen(): boolean {
      const now = performance.now()
      if (now >= nextPoll) {
        nextPoll = now + pollEveryMs
        poll().catch(() => {
          areThere = true
        })
      }
      return areThere
    },
  }
}
