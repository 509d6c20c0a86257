import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { type Listener, openListener } from '../../postgres/listen.ts'
import { type LogRecord, partitionName, type Topic } from '../port.ts'
import type { GroupConsumer } from './consumer.ts'

export interface WakesOptions {
  pool: pg.Pool
  url: string
  schema: string
  logger: Logger
}

// Bounds the delay after a lost notification.
const pollMs = 1000
const notifyEveryMs = 10
// Listening processes send a heartbeat once a second. Appends are announced while one was heard within this time.
const heardForMs = 3 * pollMs

/**
 * Wakes the consumers of this process when there are new records: its own appends, and those of others through NOTIFY.
 */
export function createWakes({ pool, url, schema, logger }: WakesOptions) {
  const channel = `${schema}_wake`
  const processId = randomUUID().slice(0, 8)
  const consumers = new Set<GroupConsumer>()
  const toNotify = new Set<Topic>()
  // Assumes at first that other processes are listening.
  let lastHeard = performance.now()
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
      lastHeard = performance.now()
      for (const consumer of consumers) consumer.wake(topics)
    }
    const opening = openListener({ url, channels: [channel], onNotification, logger })
    opening.catch(() => {
      listener = undefined
    })
    return opening
  }

  const isHeard = () => performance.now() - lastHeard < heardForMs

  function notify(): void {
    notifying ??= notifyAll().finally(() => {
      notifying = undefined
    })
  }

  async function notifyAll(): Promise<void> {
    do {
      const payload = [processId, ...toNotify].join(' ')
      toNotify.clear()
      // Not in the append's transaction: commits with a NOTIFY wait for each other's disk flush.
      const text = 'select pg_notify($1, $2)'
      await pool.query({ name: 'log-notify', text, values: [channel, payload] }).catch(() => {})
      await delay(notifyEveryMs)
    } while (toNotify.size > 0)
  }

  return {
    /** Passes on records that this process appended, in order within each partition. */
    appended(records: LogRecord[]): void {
      const batches = Map.groupBy(records, partitionName)
      for (const consumer of consumers) consumer.appended(batches)
      // Without a listener of its own, this process can't know whether others are listening.
      if (listener && !isHeard()) return
      for (const { topic } of records) toNotify.add(topic)
      notify()
    },
    /** Starts listening. Must resolve before a consumer's first read. */
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
