import { createRequire } from 'node:module'
import { Kafka, type LogEntry, logLevel } from 'kafkajs'
import type { Logger } from 'pino'
import { useFastRecordEncoder } from './record-encoder.ts'

export interface KafkaClientOptions {
  /** host:port of some of the cluster's brokers. */
  brokers: string[]
  clientId?: string
  logger: Logger
  /** Milliseconds a broker may take to answer one request. */
  requestTimeout?: number
  retries?: number
}

/** A kafkajs client that gives up soon enough for a request of ours to be answered, and logs through pino. */
export function createKafkaClient(options: KafkaClientOptions): Kafka {
  stopIdleTimers()
  useFastRecordEncoder()
  const { brokers, clientId = 'tidegate', logger, requestTimeout = 10_000, retries = 5 } = options
  return new Kafka({
    brokers,
    clientId,
    connectionTimeout: 2000,
    requestTimeout,
    enforceRequestTimeout: true,
    retry: { initialRetryTime: 100, maxRetryTime: 2000, retries },
    logLevel: logLevel.INFO,
    logCreator: () => (entry) => write(logger, entry),
  })
}

/** What kafkajs calls errors it mostly gets over by a retry; what it does not get over reaches the caller. */
function write(logger: Logger, { level, namespace, log }: LogEntry): void {
  const { message, timestamp: _, logger: __, ...details } = log
  if (level === logLevel.ERROR) logger.warn({ kafka: details, namespace }, message)
  else logger.debug({ kafka: details, namespace }, message)
}

interface RequestQueue {
  pending: unknown[]
  scheduleCheckPendingRequests(): void
}

let idleTimersStopped = false

/**
 * kafkajs 2.2.4 sets a timer for requests that wait even when none does, with a negative delay: every connection
 * wakes the process each millisecond for ever, and Node prints TimeoutNegativeWarning (kafkajs issue 1704 and 1751,
 * unmerged). A request that has to wait sets the timer anew, so with none waiting it is not needed.
 */
function stopIdleTimers(): void {
  if (idleTimersStopped) return
  idleTimersStopped = true
  const require = createRequire(import.meta.url)
  const { prototype }: { prototype: RequestQueue } = require('kafkajs/src/network/requestQueue')
  const schedule = prototype.scheduleCheckPendingRequests
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
    if (this.pending.length > 0) schedule.call(this)
  }
}
