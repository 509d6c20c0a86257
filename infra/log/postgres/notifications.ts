import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import type { Logger } from 'pino'
import { type Listener, openListener } from '../../postgres/listen.ts'
import type { Topic } from '../port.ts'
import type { RunningConsumer } from './consumer.ts'

export interface NotificationsOptions {
  pool: pg.Pool
  url: string
  schema: string
  logger: Logger
}

interface Subscriber {
  group: string
  topics: Topic[]
  consumer: RunningConsumer
}

/**
 * Wakes consumers when there is something to read: those of this process at once, those of others by NOTIFY.
 * NOTIFY is sent after the append has committed, because commits that notify wait for one another's disk
 * flush. A lost one costs no more than the consumers' poll interval.
 */
export function createNotifications({ pool, url, schema, logger }: NotificationsOptions) {
  const channel = `${schema}_wake`
  const me = randomUUID().slice(0, 8)
  const subscribers = new Set<Subscriber>()
  const unsent = new Set<string>()
  let sending: Promise<void> | undefined
  let listener: Promise<Listener> | undefined

  function receive(payload: string): void {
    const [sender, ...subjects] = payload.split(' ')
    if (sender !== me) for (const subject of subjects) wakeLocal(subject)
  }

  /** A subject is `t:` and a topic that got records, or `g:` and a group whose members changed. */
  function wakeLocal(subject: string): void {
    for (const { group, topics, consumer } of subscribers) {
      if (subject.startsWith('g:') && group === subject.slice(2)) consumer.rebalance()
      if (subject.startsWith('t:') && topics.includes(subject.slice(2))) consumer.wake()
    }
  }

  function wake(subject: string): Promise<void> {
    wakeLocal(subject)
    unsent.add(subject)
    sending ??= send().finally(() => {
      sending = undefined
    })
    return sending
  }

  async function send(): Promise<void> {
    while (unsent.size > 0) {
      const payload = [me, ...unsent].join(' ')
      unsent.clear()
      await pool.query('select pg_notify($1, $2)', [channel, payload]).catch(() => {})
    }
  }

  function wakeAll(): void {
    for (const { consumer } of subscribers) consumer.rebalance()
  }

  function listen(): Promise<Listener> {
    const onNotification = (_: string, payload: string) => receive(payload)
    const opening = openListener({ url, channels: [channel], onNotification, onReconnect: wakeAll, logger })
    opening.catch(() => {
      listener = undefined
    })
    return opening
  }

  return {
    appended: (topic: Topic) => void wake(`t:${topic}`),
    membersChanged: (group: string) => wake(`g:${group}`),
    add: (subscriber: Subscriber) => void subscribers.add(subscriber),
    remove: (subscriber: Subscriber) => void subscribers.delete(subscriber),
    /** Must resolve before a consumer reads for the first time, or the consumer may miss a notification. */
    async ready(): Promise<void> {
      listener ??= listen()
      await listener
    },
    async close(): Promise<void> {
      await sending
      await (await listener?.catch(() => undefined))?.close()
    },
  }
}
