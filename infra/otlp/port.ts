import type { FastifyInstance } from 'fastify'
import type { EventLog } from '../log/port.ts'

export type SpanAttributes = Record<string, string | number>

interface TracedWork {
  name: string
  /** The span that this one is below, as a `traceparent`; undefined begins a trace. */
  parent: string | undefined
  attributes: SpanAttributes
}

interface WorkSpan {
  /** Names this span to what follows from it. */
  traceparent: string
  set(attributes: SpanAttributes): void
  fail(): void
}

export interface Tracing {
  /** The log, whose records carry their trace on. */
  log<Guard>(log: EventLog<Guard>): EventLog<Guard>
  /** Call before routes are added. */
  requests(app: FastifyInstance): void
  /** A request to somebody else. Nothing tells them of the trace. */
  run<T>(what: TracedWork, work: (span: WorkSpan) => Promise<T>): Promise<T>
}

export interface Otlp {
  tracing: Tracing
  /** Sends what is left, within `otlpStopMs`. */
  stop(): Promise<void>
}
