import type { FastifyInstance } from 'fastify'
import type { EventLog } from '../log/port.ts'

export type SpanAttributes = Record<string, string | number>

interface TracedWork {
  name: string
  /** Parent span as a `traceparent`; undefined starts a new trace. */
  parent: string | undefined
  attributes: SpanAttributes
}

interface WorkSpan {
  /** Header with this span as the parent, for work that it causes. */
  traceparent: string
  setAttributes(attributes: SpanAttributes): void
  markFailed(): void
}

export interface Tracing {
  /** Wraps the log so that its records propagate their trace. */
  wrapLog<Guard>(log: EventLog<Guard>): EventLog<Guard>
  /** Adds hooks that trace all requests. Call before adding routes. */
  traceRequests(app: FastifyInstance): void
  /** Runs an outgoing request in a client span. The trace is not propagated to the receiver. */
  runInSpan<T>(options: TracedWork, work: (span: WorkSpan) => Promise<T>): Promise<T>
}

export interface Otlp {
  tracing: Tracing
  /** Exports the remaining spans, within `otlpStopMs`. */
  stop(): Promise<void>
}
