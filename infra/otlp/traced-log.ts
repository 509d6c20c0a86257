import type { AsyncLocalStorage } from 'node:async_hooks'
import { type Span, SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import type { Batch, ConsumeOptions, EventLog, KeyedRecord, LogRecord } from '../log/port.ts'
import { type Spans, traceparentOf } from './spans.ts'
import type { RequestTrace } from './traced-requests.ts'

/**
 * Every record that belongs to a trace says so in its header `traceparent`: that of what it follows from, of the
 * request that appends it, or of its session. Whoever consumes it has a span of its own for it.
 */
export function traceLog<Guard>(
  log: EventLog<Guard>,
  { spans, requests }: { spans: Spans; requests: AsyncLocalStorage<RequestTrace | undefined> },
): EventLog<Guard> {
  function carrying<R extends KeyedRecord>(record: R, sends: Map<string, Span>): R {
    const sessionId = sessionOf(record)
    const parent = record.headers.traceparent ?? requests.getStore()?.traceparent(sessionId)
    const trace = parent ?? sessionId
    if (trace === undefined) return record
    const id = `${trace} ${record.topic}`
    const span = sends.get(id) ?? spans.start({ ...sendOf(record), parent, sessionId })
    sends.set(id, span)
    return withParent(record, span)
  }

  async function sending<T>(
    send: (carry: <R extends KeyedRecord>(record: R) => R) => Promise<T>,
  ): Promise<T> {
    const sends = new Map<string, Span>()
    try {
      return await send((record) => carrying(record, sends))
    } catch (error) {
      for (const span of sends.values()) span.setStatus({ code: SpanStatusCode.ERROR })
      throw error
    } finally {
      for (const span of sends.values()) span.end()
    }
  }

  function consume(options: ConsumeOptions) {
    return log.consume({ ...options, handle: (batches) => handle(batches, options) })
  }

  async function handle(batches: Batch[], options: ConsumeOptions) {
    const begun = batches.map((batch) => ({ batch, processed: [] as Span[] }))
    const traced = begun.map(({ batch, processed }) => ({
      ...batch,
      records: batch.records.map((record) => processing(record, options, processed)),
    }))
    // An append of this process wakes the consumer, which is no part of that request.
    const readOn = await requests.run(undefined, () => options.handle(traced))
    const failed = (readOn ?? []).filter((position) => position.failed)
    for (const { batch, processed } of begun) {
      const isFailed = failed.some(
        (one) => one.topic === batch.topic && one.partition === batch.partition,
      )
      // What comes again has a span then: a partition that stands still would send some each time.
      if (!isFailed) for (const span of processed) span.end()
    }
    return readOn
  }

  // The record as its consumer sees it: what follows from it is below the new span.
  function processing(
    record: LogRecord,
    { group, types }: ConsumeOptions,
    processed: Span[],
  ): LogRecord {
    const { traceparent: parent, event_type = '' } = record.headers
    if (parent === undefined || !parseTraceParent(parent) || isOld(record)) return record
    if (types && !types.has(event_type)) return record
    const span = spans.start({ ...processOf(record, group), parent })
    if (!span.isRecording()) return record
    processed.push(span)
    return withParent(record, span)
  }

  const { append, appendIf } = log
  return {
    ...log,
    append: (records) => sending((carry) => append(records.map(carry))),
    ...(appendIf && {
      appendIf: (record, guard) => sending((carry) => appendIf(carry(record), guard)),
    }),
    consume,
  }
}

// A new read model reads everything that ever happened, and nobody waits for that to be seen.
const maxAgeMs = 60 * 60 * 1000
const isOld = ({ timestamp }: LogRecord): boolean => Date.now() - timestamp > maxAgeMs

const sessionOf = ({ key }: KeyedRecord) => (key.startsWith('sid_') ? key : undefined)

function withParent<R extends KeyedRecord>(record: R, span: Span): R {
  return { ...record, headers: { ...record.headers, traceparent: traceparentOf(span) } }
}

const sendOf = (record: KeyedRecord) => ({
  name: `send ${record.topic}`,
  kind: SpanKind.PRODUCER,
  attributes: { ...attributesOf(record), 'messaging.operation.type': 'send' },
})

const processOf = (record: LogRecord, group: string) => ({
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

// Names and ids: nothing that a person typed, and no address.
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
