import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { DiagLogLevel, diag, SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { ExportResultCode, parseKeyPairsIntoRecord } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace'
import { type Logger, loggedError } from '../telemetry.ts'
import { within } from '../timing.ts'
import type { Otlp, SpanAttributes, Tracing } from './port.ts'
import type { OtlpSettings } from './settings.ts'
import { createSpans, type Spans, traceparentOf } from './spans.ts'
import { traceLog } from './traced-log.ts'
import { type RequestTrace, traceRequests } from './traced-requests.ts'

// About 10 MB. A batch of records ends thousands of spans at once.
const maxQueueSize = 8192

/**
 * The SDK's parts are put together here and not by `@opentelemetry/sdk-node`, because that reads the environment itself,
 * and this program refuses settings that are not valid by their names. Nothing would become shorter: spans of records
 * and the trace id of a session are no part of it.
 */
export function startOtlp(
  settings: OtlpSettings,
  { logger, flushMs }: { logger: Logger; flushMs: number },
): Otlp {
  tellOfDropped(logger)
  const spans = openSpans(settings, logger)
  return {
    tracing: createTracing(spans, settings),
    stop: () => within(spans.stop(), flushMs).catch(() => {}),
  }
}

function resourceOf({ serviceName, resourceAttributes }: OtlpSettings): Resource {
  return resourceFromAttributes({
    'service.name': 'tidegate',
    'service.instance.id': randomUUID(),
    ...parseKeyPairsIntoRecord(resourceAttributes),
    ...(serviceName && { 'service.name': serviceName }),
  })
}

function openSpans(settings: OtlpSettings, logger: Logger): Spans {
  const request = { url: settings.tracesUrl, headers: parseKeyPairsIntoRecord(settings.headers) }
  const exporter = logged(new OTLPTraceExporter(request), logger)
  return createSpans({
    resource: resourceOf(settings),
    sampler: samplerOf(settings.sampler),
    spanProcessors: [
      new BatchSpanProcessor({ exporter, scheduledDelayMillis: 1000, maxQueueSize }),
    ],
    spanLimits: { attributeValueLengthLimit: 256 },
  })
}

// The SDK says by this alone that its queue was full; `logged` says what else it has to say.
function tellOfDropped(logger: Logger): void {
  const ignore = () => {}
  const warn = (message: string) => logger.warn(message)
  const all = { error: ignore, warn, info: ignore, debug: ignore, verbose: ignore }
  diag.setLogger(all, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
}

// Says when sending fails for the first time, and when it works again. What failed is not sent again.
function logged(exporter: OTLPTraceExporter, logger: Logger): OTLPTraceExporter {
  const send = exporter.export.bind(exporter)
  let isFailing = false
  exporter.export = (items, done) =>
    send(items, (result) => {
      const fails = result.code !== ExportResultCode.SUCCESS
      if (fails && !isFailing)
        logger.warn({ err: loggedError(result.error) }, 'traces are lost: OTLP cannot be sent')
      if (!fails && isFailing) logger.info('traces are sent again')
      isFailing = fails
      done(result)
    })
  return exporter
}

function samplerOf({ name, ratio }: OtlpSettings['sampler']): Sampler {
  const own = name.replace('parentbased_', '')
  const root =
    own === 'traceidratio'
      ? new TraceIdRatioBasedSampler(ratio)
      : own === 'always_off'
        ? new AlwaysOffSampler()
        : new AlwaysOnSampler()
  return own === name ? root : new ParentBasedSampler({ root })
}

function createTracing(spans: Spans, { acceptsParents }: OtlpSettings): Tracing {
  const requests = new AsyncLocalStorage<RequestTrace | undefined>()
  return {
    log: (log) => traceLog(log, { spans, requests }),
    requests: (app) => traceRequests(app, { spans, requests, acceptsParents }),
    run: runInSpan(spans),
  }
}

function runInSpan(spans: Spans): Tracing['run'] {
  return async (what, work) => {
    const span = spans.start({ ...what, kind: SpanKind.CLIENT })
    const fail = () => void span.setStatus({ code: SpanStatusCode.ERROR })
    const set = (attributes: SpanAttributes) => void span.setAttributes(attributes)
    try {
      return await work({ traceparent: traceparentOf(span), set, fail })
    } catch (error) {
      fail()
      throw error
    } finally {
      span.end()
    }
  }
}
