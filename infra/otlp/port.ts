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
  /** This span as the parent of spans that follow from it. */
  traceparent: string
  set(attributes: SpanAttributes): void
  fail(): void
}

export interface Tracing {
  /** Wraps the log so that its records propagate their trace. */
  log<Guard>(log: EventLog<Guard>): EventLog<Guard>
  /** Traces all requests. Call before adding routes. */
  requests(app: FastifyInstance): void
  /** Runs an outgoing request in a client span. The trace is not propagated to the receiver. */
  run<T>(options: TracedWork, work: (span: WorkSpan) => Promise<T>): Promise<T>
}

export interface Otlp {
  tracing: Tracing
  /** Exports the remaining spans, within `otlpStopMs`. */
  stop(): Promise<void>
}
