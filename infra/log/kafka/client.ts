import { createRequire } from 'node:module'
import { Kafka, type LogEntry, logLevel } from 'kafkajs'
import type { Logger } from 'pino'
import { registerZstd } from './compression.ts'
import type { KafkaSecurity } from './security.ts'

export interface KafkaClientOptions {
  brokers: string[]
  clientId?: string
  logger: Logger
  /** Default: neither TLS nor a password. */
  security?: KafkaSecurity
  requestTimeout?: number
  retries?: number
}

/** Creates a kafkajs client that logs through pino. Its timeouts are shorter than those of our own requests. */
export function createKafkaClient(options: KafkaClientOptions): Kafka {
  patchIdleTimers()
  patchRecordEncoder()
  registerZstd()
  const {
    brokers,
    clientId = 'tidegate',
    logger,
    security,
    requestTimeout = 10_000,
    retries = 5,
  } = options
  return new Kafka({
    ...security,
    brokers,
    clientId,
    connectionTimeout: 2000,
    requestTimeout,
    enforceRequestTimeout: true,
    retry: { initialRetryTime: 100, maxRetryTime: 2000, retries },
    logLevel: logLevel.INFO,
    logCreator: () => (entry) => logKafka(logger, entry),
  })
}

function logKafka(logger: Logger, { level, namespace, log }: LogEntry): void {
  // Drops the stack: thrown errors have their own, and kafkajs's stacks end in its timers.
  const { message, timestamp: _, logger: __, stack: ___, ...details } = log
  // Logged when topics already exist, which the caller handles.
  const isExpected = String(log.error) === 'Topic creation errors'
  if (level === logLevel.ERROR && !isExpected) logger.warn({ kafka: details, namespace }, message)
  else logger.debug({ kafka: details, namespace }, message)
}

/*
 * Two monkey patches of kafkajs 2.2.4, which is pinned and no longer maintained, so neither can be fixed upstream.
 * Without the first one, idle connections take 20 times the CPU time. Without the second one, each appended record
 * takes 5 times the CPU time.
 */

interface RequestQueue {
  pending: unknown[]
  scheduleCheckPendingRequests(): void
}

let idleTimersPatched = false

// kafkajs sets a timer with a negative delay even when no request is pending (issues 1704 and 1751, unmerged). Every
// connection then wakes the process each millisecond, and Node prints TimeoutNegativeWarning. Skipping it is safe,
// because a request that has to wait sets the timer again.
function patchIdleTimers(): void {
  if (idleTimersPatched) return
  idleTimersPatched = true
  const require = createRequire(import.meta.url)
  const { prototype }: { prototype: RequestQueue } = require('kafkajs/src/network/requestQueue')
  const schedule = prototype.scheduleCheckPendingRequests
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
    if (this.pending.length > 0) schedule.call(this)
  }
}

export interface RecordParts {
  offsetDelta?: number
  timestampDelta?: number
  key: string | Buffer | null
  value: string | Buffer | null
  headers?: Record<string, string>
}

const encoderPath = 'kafkajs/src/protocol/recordBatch/record/v0'

/**
 * Replaces the record encoder of kafkajs, which allocates half a kilobyte for each record and header. Must be called
 * before the first record is sent.
 */
export function patchRecordEncoder(): void {
  const require = createRequire(import.meta.url)
  require(encoderPath)
  const loaded = require.cache[require.resolve(encoderPath)]
  if (loaded) loaded.exports = encodeRecord
}

/** Encodes a record of a batch, magic 2 (kafka.apache.org, "Record"). Numbers are zigzag varints. */
export function encodeRecord(parts: RecordParts) {
  const { offsetDelta = 0, timestampDelta = 0, key, value, headers = {} } = parts
  const entries = Object.entries(headers)
  const bodySize =
    1 +
    varintSize(timestampDelta) +
    varintSize(offsetDelta) +
    sizeOf(key) +
    sizeOf(value) +
    varintSize(entries.length) +
    entries.reduce((sum, [name, text]) => sum + sizeOf(name) + sizeOf(text), 0)
  const buffer = Buffer.allocUnsafe(varintSize(bodySize) + bodySize)
  let at = writeVarint(buffer, bodySize, 0)
  // Attributes, all unset.
  at = buffer.writeInt8(0, at)
  at = writeVarint(buffer, timestampDelta, at)
  at = writeVarint(buffer, offsetDelta, at)
  at = writeBytes(buffer, key, at)
  at = writeBytes(buffer, value, at)
  at = writeVarint(buffer, entries.length, at)
  for (const [name, text] of entries) at = writeBytes(buffer, text, writeBytes(buffer, name, at))
  return { buf: buffer, buffer }
}

type Bytes = RecordParts['key']

function sizeOf(bytes: Bytes): number {
  if (bytes === null) return varintSize(-1)
  const size = Buffer.byteLength(bytes)
  return varintSize(size) + size
}

function writeBytes(buffer: Buffer, bytes: Bytes, at: number): number {
  if (bytes === null) return writeVarint(buffer, -1, at)
  const start = writeVarint(buffer, Buffer.byteLength(bytes), at)
  return (
    start + (typeof bytes === 'string' ? buffer.write(bytes, start) : bytes.copy(buffer, start))
  )
}

// Only timestamps of records that were moved from the embedded log exceed 30 bits.
const zigzag = (number: number) =>
  number < 2 ** 30 ? ((number << 1) ^ (number >> 31)) >>> 0 : number * 2

function varintSize(number: number): number {
  let size = 1
  let rest = zigzag(number)
  for (; rest >= 2 ** 32; rest = Math.floor(rest / 128)) size++
  for (; rest > 0x7f; rest >>>= 7) size++
  return size
}

function writeVarint(buffer: Buffer, number: number, at: number): number {
  let next = at
  let rest = zigzag(number)
  for (; rest >= 2 ** 32; rest = Math.floor(rest / 128)) buffer[next++] = (rest % 128) | 0x80
  for (; rest > 0x7f; rest >>>= 7) buffer[next++] = (rest & 0x7f) | 0x80
  buffer[next++] = rest
  return next
}
