import type { AsyncLocalStorage } from 'node:async_hooks'
import { type Span, SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import type { Batch, ConsumeOptions, EventLog, KeyedRecord, LogRecord } from '../log/port.ts'
import { type Spans, traceparentOf } from './spans.ts'
import type { RequestTrace } from './traced-requests.ts'

/**
 * Wraps the log with trace propagation. An appended record gets a `traceparent` header: that of its cause, of the
 * request that appends it, or of its session. Consumers process each record in a span of its own.
 */
export function traceLog<Guard>(
  log: EventLog<Guard>,
  { spans, requests }: { spans: Spans; requests: AsyncLocalStorage<RequestTrace | undefined> },
): EventLog<Guard> {
  function withTrace<R extends KeyedRecord>(record: R, sendSpans: Map<string, Span>): R {
    const sessionId = sessionIdOf(record)
    const parent = record.headers.traceparent ?? requests.getStore()?.traceparent(sessionId)
    const trace = parent ?? sessionId
    if (trace === undefined) return record
    const id = `${trace} ${record.topic}`
    const span = sendSpans.get(id) ?? spans.start({ ...sendSpanOf(record), parent, sessionId })
    sendSpans.set(id, span)
    return withParent(record, span)
  }

  async function sendTraced<T>(
    send: (addTrace: <R extends KeyedRecord>(record: R) => R) => Promise<T>,
  ): Promise<T> {
    const sendSpans = new Map<string, Span>()
    try {
      return await send((record) => withTrace(record, sendSpans))
    } catch (error) {
      for (const span of sendSpans.values()) span.setStatus({ code: SpanStatusCode.ERROR })
      throw error
    } finally {
      for (const span of sendSpans.values()) span.end()
    }
  }

  function consume(options: ConsumeOptions) {
    return log.consume({ ...options, handle: (batches) => handle(batches, options) })
  }

  async function handle(batches: Batch[], options: ConsumeOptions) {
    const running = batches.map((batch) => ({ batch, spans: [] as Span[] }))
    const traced = running.map(({ batch, spans }) => ({
      ...batch,
      records: batch.records.map((record) => startProcessing(record, options, spans)),
    }))
    // Runs outside of any request: an append may have woken the consumer, but consuming is not part of its request.
    const positions = await requests.run(undefined, () => options.handle(traced))
    const failed = (positions ?? []).filter((position) => position.failed)
    for (const { batch, spans } of running) {
      const isFailed = failed.some(
        ({ topic, partition }) => topic === batch.topic && partition === batch.partition,
      )
      // Drops the spans of a failed batch: each retry creates new ones, and a stuck partition must not export them all.
      if (!isFailed) for (const span of spans) span.end()
    }
    return positions
  }

  // Starts the record's span, adds it to `started`, and returns the record with the span's `traceparent`.
  function startProcessing(
    record: LogRecord,
    { group, types }: ConsumeOptions,
    started: Span[],
  ): LogRecord {
    const { traceparent: parent, event_type = '' } = record.headers
    if (parent === undefined || !parseTraceParent(parent) || isOld(record)) return record
    if (types && !types.has(event_type)) return record
    const span = spans.start({ ...processSpanOf(record, group), parent })
    if (!span.isRecording()) return record
    started.push(span)
    return withParent(record, span)
  }

  const { append, appendIf } = log
  return {
    ...log,
    append: (records) => sendTraced((addTrace) => append(records.map(addTrace))),
    ...(appendIf && {
      appendIf: (record, guard) => sendTraced((addTrace) => appendIf(addTrace(record), guard)),
    }),
    consume,
  }
}

// Older records are not traced: a new read model replays the entire log.
const maxAgeMs = 60 * 60 * 1000
const isOld = ({ timestamp }: LogRecord): boolean => Date.now() - timestamp > maxAgeMs

const sessionIdOf = ({ key }: KeyedRecord) => (key.startsWith('sid_') ? key : undefined)

function withParent<R extends KeyedRecord>(record: R, span: Span): R {
  return { ...record, headers: { ...record.headers, traceparent: traceparentOf(span) } }
}

const sendSpanOf = (record: KeyedRecord) => ({
  name: `send ${record.topic}`,
  kind: SpanKind.PRODUCER,
  attributes: { ...attributesOf(record), 'messaging.operation.type': 'send' },
})

const processSpanOf = (record: LogRecord, group: string) => ({
  name: `process ${record.topic} by ${group}`,
  kind: SpanKind.CONSUMER,
  attributes: {
    ...attributesOf(record),
    'messaging.operation.type': 'process',
    'messaging.consumer.group.name': group,
    'messaging.destination.partition.id': String(record.partition),
    'tidegate.offset': record.offset,
  },
})

// Contains only names and ids, no IP address or anything that a person typed.
function attributesOf({ topic, key, headers }: KeyedRecord) {
  const { event_id, event_type, organization_id, environment } = headers
  return {
    'messaging.system': 'tidegate',
    'messaging.destination.name': topic,
    'tidegate.key': key,
    ...(event_id && { 'messaging.message.id': event_id }),
    ...(event_type && { 'tidegate.event_type': event_type }),
    ...(organization_id && { 'tidegate.organization_id': organization_id }),
    ...(environment && { 'tidegate.environment': environment }),
  }
}
