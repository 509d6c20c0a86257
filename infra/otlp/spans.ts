import { hash } from 'node:crypto'
import { type Attributes, ROOT_CONTEXT, type Span, type SpanKind, trace } from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import {
  RandomIdGenerator,
  TracerProvider,
  type TracerProviderOptions,
} from '@opentelemetry/sdk-trace'

export interface NewSpan {
  name: string
  kind: SpanKind
  attributes: Attributes
  /** Parent span as a `traceparent`; an unreadable one is ignored. */
  parent: string | undefined
  /** Session whose trace a span without a parent joins. Without either, the span starts a new trace. */
  sessionId?: string | undefined
  /** Epoch milliseconds. */
  startTime?: number
}

export type Spans = ReturnType<typeof createSpans>

/** Returns the trace id of a session, derived from the session id, so that all processes agree on it. */
export const sessionTraceId = (sessionId: string): string =>
  hash('sha256', sessionId, 'hex').slice(0, 32)

export function createSpans(options: Omit<TracerProviderOptions, 'idGenerator'>) {
  const random = new RandomIdGenerator()
  let sessionId: string | undefined
  const idGenerator = {
    generateSpanId: () => random.generateSpanId(),
    generateTraceId: () =>
      sessionId === undefined ? random.generateTraceId() : sessionTraceId(sessionId),
  }
  const provider = new TracerProvider({ ...options, idGenerator })
  const tracer = provider.getTracer('tidegate')
  return {
    start({ parent, sessionId: id, ...span }: NewSpan): Span {
      // startSpan calls `generateTraceId`, which reads `sessionId`.
      sessionId = id
      return tracer.startSpan(span.name, span, contextOf(parent))
    },
    /** Exports the remaining spans. */
    stop: () => provider.shutdown(),
  }
}

function contextOf(parent: string | undefined) {
  const remote = parent === undefined ? null : parseTraceParent(parent)
  return remote ? trace.setSpanContext(ROOT_CONTEXT, { ...remote, isRemote: true }) : ROOT_CONTEXT
}

/** Returns the `traceparent` header of a span (www.w3.org/TR/trace-context). */
export function traceparentOf(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return `00-${traceId}-${spanId}-0${traceFlags & 1}`
}
