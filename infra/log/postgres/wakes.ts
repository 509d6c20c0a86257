import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { type Listener, openListener } from '../../postgres/listen.ts'
import { type LogRecord, placeName, type Topic } from '../port.ts'
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
// Another process is told of appends while it is heard: it says once a second that it is there.
const heardForMs = 3 * pollMs

/**
 * Wakes the groups of this process when there are new records for them. It knows what this process appended. NOTIFY says
 * what others did.
 */
export function createWakes({ pool, url, schema, logger }: WakesOptions) {
  const channel = `${schema}_wake`
  const me = randomUUID().slice(0, 8)
  const consumers = new Set<GroupConsumer>()
  const toNotify = new Set<Topic>()
  // At first it assumes that there are others.
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
      if (sender === me) return
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
      const payload = [me, ...toNotify].join(' ')
      toNotify.clear()
      // Not in the append: commits that notify wait for one another's disk flush.
      const text = 'select pg_notify($1, $2)'
      await pool.query({ name: 'log-notify', text, values: [channel, payload] }).catch(() => {})
      await delay(notifyEveryMs)
    } while (toNotify.size > 0)
  }

  return {
    /** Records of this process, in the order of their partitions. */
    appended(records: LogRecord[]): void {
      const batches = Map.groupBy(records, placeName)
      for (const consumer of consumers) consumer.appended(batches)
      // A process that does not listen itself cannot know.
      if (listener && !isHeard()) return
      for (const { topic } of records) toNotify.add(topic)
      notify()
    },
    /** Must resolve before a consumer reads for the first time. */
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
