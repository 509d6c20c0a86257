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
  /** As a `traceparent`; one that cannot be read is none. */
  parent: string | undefined
  /** Without a parent the span is in the trace of this session, else in one of its own. */
  sessionId?: string | undefined
  /** Epoch milliseconds. */
  startTime?: number
}

export type Spans = ReturnType<typeof createSpans>

/** Every process names the trace of a session alike, and nobody has to be told. */
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
    start({ parent, sessionId: about, ...span }: NewSpan): Span {
      // Read by the generator, within this call.
      sessionId = about
      return tracer.startSpan(span.name, span, contextOf(parent))
    },
    /** Sends what has not been sent yet. */
    stop: () => provider.shutdown(),
  }
}

function contextOf(parent: string | undefined) {
  const remote = parent === undefined ? null : parseTraceParent(parent)
  return remote ? trace.setSpanContext(ROOT_CONTEXT, { ...remote, isRemote: true }) : ROOT_CONTEXT
}

/** The span's name in the header `traceparent` (www.w3.org/TR/trace-context). */
export function traceparentOf(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return `00-${traceId}-${spanId}-0${traceFlags & 1}`
}
