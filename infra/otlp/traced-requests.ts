import type { AsyncLocalStorage } from 'node:async_hooks'
import { type Span, SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Spans, traceparentOf } from './spans.ts'

/** The span of a request, begun when it is first asked for: what it appends may tell the trace that it is in. */
export interface RequestTrace {
  traceparent(sessionId?: string): string
  end(reply: FastifyReply): void
}

interface TracedRequestsParts {
  spans: Spans
  requests: AsyncLocalStorage<RequestTrace | undefined>
  acceptsParents: boolean
}

export function traceRequests(app: FastifyInstance, parts: TracedRequestsParts): void {
  const traces = new WeakMap<FastifyRequest, RequestTrace>()
  app.addHook('onRequest', (request, reply, done) => {
    const isTraced = request.routeOptions.config?.probe !== true && request.method !== 'OPTIONS'
    if (isTraced) begin(request, reply)
    done()
  })
  // Not earlier: the body is parsed in the context of its connection.
  app.addHook('preHandler', (request, _reply, done) =>
    parts.requests.run(traces.get(request), done),
  )

  function begin(request: FastifyRequest, reply: FastifyReply): void {
    const trace = requestTrace(request, parts)
    traces.set(request, trace)
    // And not onResponse, which no client that went away gets to.
    reply.raw.once('close', () => trace.end(reply))
  }
}

function requestTrace(
  request: FastifyRequest,
  { spans, acceptsParents }: TracedRequestsParts,
): RequestTrace {
  const startTime = Date.now()
  const { traceparent } = request.headers
  const parent = acceptsParents && typeof traceparent === 'string' ? traceparent : undefined
  let span: Span | undefined

  function begin(sessionId?: string): Span {
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
    traceparent: (sessionId) => traceparentOf(begin(sessionId)),
    end({ statusCode, raw }) {
      const ended = begin()
      if (raw.headersSent) ended.setAttribute('http.response.status_code', statusCode)
      else ended.setAttribute('error.type', 'client_gone')
      if (raw.headersSent && statusCode >= 500) ended.setStatus({ code: SpanStatusCode.ERROR })
      ended.end()
    },
  }
}

// The pattern and never the URL: ids of documents in it are as good as keys.
function spanOf({ method, routeOptions, id }: FastifyRequest) {
  const route = routeOptions.url ?? 'unknown'
  return {
    name: `${method} ${route}`,
    attributes: { 'http.request.method': method, 'http.route': route, 'tidegate.request_id': id },
  }
}
