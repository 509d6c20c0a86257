import type { AsyncLocalStorage } from 'node:async_hooks'
import { type Span, SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Spans, traceparentOf } from './spans.ts'

/** The span of a request. Starts on first use, because an appended record may determine its trace. */
export interface RequestTrace {
  /** Returns the span's `traceparent`. The first call's `sessionId` determines the trace. */
  traceparent(sessionId?: string): string
  end(reply: FastifyReply): void
}

interface TracedRequestsParts {
  spans: Spans
  requests: AsyncLocalStorage<RequestTrace | undefined>
  acceptsParents: boolean
}

/** Adds hooks that trace all requests but probes and preflights. */
export function traceRequests(app: FastifyInstance, parts: TracedRequestsParts): void {
  const traces = new WeakMap<FastifyRequest, RequestTrace>()
  app.addHook('onRequest', (request, reply, done) => {
    const isTraced = request.routeOptions.config?.probe !== true && request.method !== 'OPTIONS'
    if (isTraced) startTrace(request, reply)
    done()
  })
  // Sets the context in preHandler, because the body is parsed in the context of the connection.
  app.addHook('preHandler', (request, _reply, done) =>
    parts.requests.run(traces.get(request), done),
  )

  function startTrace(request: FastifyRequest, reply: FastifyReply): void {
    const trace = createRequestTrace(request, parts)
    traces.set(request, trace)
    // Uses `close`, because onResponse does not run if the client disconnects.
    reply.raw.once('close', () => trace.end(reply))
  }
}

function createRequestTrace(
  request: FastifyRequest,
  { spans, acceptsParents }: TracedRequestsParts,
): RequestTrace {
  const startTime = Date.now()
  const { traceparent } = request.headers
  const parent = acceptsParents && typeof traceparent === 'string' ? traceparent : undefined
  let span: Span | undefined

  function startSpan(sessionId?: string): Span {
    span ??= spans.start({
      ...spanOf(request),
      kind: SpanKind.SERVER,
      parent,
      sessionId,
      startTime,
    })
    return span
  }

  return {
    traceparent: (sessionId) => traceparentOf(startSpan(sessionId)),
    end({ statusCode, raw }) {
      const current = startSpan()
      if (raw.headersSent) current.setAttribute('http.response.status_code', statusCode)
      else current.setAttribute('error.type', 'client_gone')
      if (raw.headersSent && statusCode >= 500) current.setStatus({ code: SpanStatusCode.ERROR })
      current.end()
    },
  }
}

// Uses the route pattern, never the URL: document ids in it are as sensitive as keys.
function spanOf({ method, routeOptions, id }: FastifyRequest) {
  const route = routeOptions.url ?? 'unknown'
  return {
    name: `${method} ${route}`,
    attributes: { 'http.request.method': method, 'http.route': route, 'tidegate.request_id': id },
  }
}
