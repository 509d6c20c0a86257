import { type EventLog, LogUnavailable } from '../../../infra/log/port.ts'

interface Gate {
  log: EventLog
  open(): void
  /** Resolves when the first record or append is held. */
  reached: Promise<void>
}

/** Returns a log that delivers one record at a time and holds attempts until the gate is opened. */
export function holdAttempts(log: EventLog): Gate {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
  const held: EventLog = {
    ...log,
    consume: (options) =>
      log.consume({
        ...options,
        maxRecords: 1,
        async handle(batches) {
          const records = batches.flatMap((batch) => batch.records)
          if (records.some(({ headers }) => headers.event_type === 'WebhookDeliveryAttempted')) {
            reach()
            await opened
          }
          return options.handle(batches)
        },
      }),
  }
  return { log: held, open, reached }
}

/** Returns a log that rejects appends until the gate is opened. */
export function refuseAppends(log: EventLog): Gate {
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
  let isOpen = false
  const refusing: EventLog = {
    ...log,
    async append(records) {
      if (isOpen) return log.append(records)
      reach()
      throw new LogUnavailable('the log is away')
    },
  }
  const open = () => {
    isOpen = true
  }
  return { log: refusing, open, reached }
}

/** Returns a log that counts the queries for its end positions. */
export function countEnds(log: EventLog): { log: EventLog; asked(times: number): Promise<void> } {
  let count = 0
  const waiting: { times: number; resolve: () => void }[] = []
  const counting: EventLog = {
    ...log,
    endPositions(topic) {
      count++
      for (const { times, resolve } of waiting) if (count >= times) resolve()
      return log.endPositions(topic)
    },
  }
  return {
    log: counting,
    asked(times) {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.push({ times: count + times, resolve })
      return promise
    },
  }
}
