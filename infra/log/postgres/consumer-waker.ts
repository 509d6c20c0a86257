import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { type Listener, openListener } from '../../postgres/listen.ts'
import { type LogRecord, partitionName, type Topic } from '../port.ts'
import type { GroupConsumer } from './consumer.ts'

export interface ConsumerWakerOptions {
  pool: pg.Pool
  url: string
  schema: string
  logger: Logger
}

// Limits the delay after a lost notification.
const pollMs = 1000
const notifyEveryMs = 10
// Listening processes send a heartbeat once a second. Without one for this long, appends aren't announced.
const listeningForMs = 3 * pollMs

/** Wakes the consumers of this process for its own appends, and through NOTIFY for those of other processes. */
export function createConsumerWaker({ pool, url, schema, logger }: ConsumerWakerOptions) {
  const channel = `${schema}_wake`
  const processId = randomUUID().slice(0, 8)
  const consumers = new Set<GroupConsumer>()
  const toNotify = new Set<Topic>()
  // Assumes at first that other processes are listening.
  let lastHeartbeat = performance.now()
  let notifying: Promise<void> | undefined
  let listener: Promise<Listener> | undefined

  function wakeAll(): void {
    for (const consumer of consumers) consumer.wake()
  }

  const poll = setInterval(() => {
    wakeAll()
    if (listener) notify()
  }, pollMs)
  poll.unref()

  function listen(): Promise<Listener> {
    const onNotification = (_: string, payload: string) => {
      const [sender, ...topics] = payload.split(' ')
      if (sender === processId) return
      lastHeartbeat = performance.now()
      for (const consumer of consumers) consumer.wake(topics)
    }
    const opening = openListener({ url, channels: [channel], onNotification, logger })
    opening.catch(() => {
      listener = undefined
    })
    return opening
  }

  const hasListeners = () => performance.now() - lastHeartbeat < listeningForMs

  function notify(): void {
    notifying ??= notifyAll().finally(() => {
      notifying = undefined
    })
  }

  async function notifyAll(): Promise<void> {
    do {
      const payload = [processId, ...toNotify].join(' ')
      toNotify.clear()
      // Not in the append's transaction, because commits with a NOTIFY wait for each other's disk flush.
      const text = 'select pg_notify($1, $2)'
      await pool.query({ name: 'log-notify', text, values: [channel, payload] }).catch(() => {})
      await delay(notifyEveryMs)
    } while (toNotify.size > 0)
  }

  return {
    /** Passes appended records to the consumers, in order within each partition, and notifies other processes. */
    announce(records: LogRecord[]): void {
      const batches = Map.groupBy(records, partitionName)
      for (const consumer of consumers) consumer.bufferAppended(batches)
      // A process that doesn't listen itself can't know if others do.
      if (listener && !hasListeners()) return
      for (const { topic } of records) toNotify.add(topic)
      notify()
    },
    /** Starts to listen. Must resolve before a consumer's first read. */
    async open(): Promise<void> {
      listener ??= listen()
      await listener
    },
    wakeAll,
    add: (consumer: GroupConsumer) => void consumers.add(consumer),
    remove: (consumer: GroupConsumer) => void consumers.delete(consumer),
    async close(): Promise<void> {
      clearInterval(poll)
      await notifying
      await (await listener?.catch(() => undefined))?.close()
    },
  }
}
