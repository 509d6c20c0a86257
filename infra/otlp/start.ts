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
import { errorFields, type Logger } from '../telemetry.ts'
import { withTimeout } from '../timing.ts'
import type { Otlp, SpanAttributes, Tracing } from './port.ts'
import type { OtlpSettings } from './settings.ts'
import { createSpans, type Spans, traceparentOf } from './spans.ts'
import { traceLog } from './traced-log.ts'
import { type RequestTrace, traceRequests } from './traced-requests.ts'

// About 10 MB: a batch of records can end thousands of spans at once.
const maxQueueSize = 8192

/**
 * Starts the export of traces. It assembles the SDK itself, because `@opentelemetry/sdk-node` reads the environment
 * without validating it, and supports neither spans of records nor trace ids derived from sessions.
 */
export function startOtlp(
  settings: OtlpSettings,
  { logger, flushMs }: { logger: Logger; flushMs: number },
): Otlp {
  logDroppedSpans(logger)
  const spans = openSpans(settings, logger)
  return {
    tracing: createTracing(spans, settings),
    stop: () => withTimeout(spans.stop(), flushMs).catch(() => {}),
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
  const exporter = withFailureLog(new OTLPTraceExporter(request), logger)
  return createSpans({
    resource: resourceOf(settings),
    sampler: samplerOf(settings.sampler),
    spanProcessors: [
      new BatchSpanProcessor({ exporter, scheduledDelayMillis: 1000, maxQueueSize }),
    ],
    spanLimits: { attributeValueLengthLimit: 256 },
  })
}

// Logs the SDK's warnings that its queue is full, which only its diagnostic logger reports.
function logDroppedSpans(logger: Logger): void {
  const ignore = () => {}
  const warn = (message: string) => logger.warn(message)
  const diagLogger = { error: ignore, warn, info: ignore, debug: ignore, verbose: ignore }
  diag.setLogger(diagLogger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
}

// Logs when exports start to fail and when they resume. Failed exports are not retried.
function withFailureLog(exporter: OTLPTraceExporter, logger: Logger): OTLPTraceExporter {
  const send = exporter.export.bind(exporter)
  let isFailing = false
  exporter.export = (items, done) =>
    send(items, (result) => {
      const fails = result.code !== ExportResultCode.SUCCESS
      if (fails && !isFailing)
        logger.warn(
          { err: errorFields(result.error) },
          'failed to export OTLP traces; dropping them',
        )
      if (!fails && isFailing) logger.info('resumed exporting OTLP traces')
      isFailing = fails
      done(result)
    })
  return exporter
}

function samplerOf({ name, ratio }: OtlpSettings['sampler']): Sampler {
  const rootName = name.replace('parentbased_', '')
  const root =
    rootName === 'traceidratio'
      ? new TraceIdRatioBasedSampler(ratio)
      : rootName === 'always_off'
        ? new AlwaysOffSampler()
        : new AlwaysOnSampler()
  return rootName === name ? root : new ParentBasedSampler({ root })
}

function createTracing(spans: Spans, { acceptsParents }: OtlpSettings): Tracing {
  const requests = new AsyncLocalStorage<RequestTrace | undefined>()
  return {
    wrapLog: (log) => traceLog(log, { spans, requests }),
    traceRequests: (app) => traceRequests(app, { spans, requests, acceptsParents }),
    runInSpan: createSpanRunner(spans),
  }
}

function createSpanRunner(spans: Spans): Tracing['runInSpan'] {
  return async (options, work) => {
    const span = spans.start({ ...options, kind: SpanKind.CLIENT })
    const markFailed = () => void span.setStatus({ code: SpanStatusCode.ERROR })
    const setAttributes = (attributes: SpanAttributes) => void span.setAttributes(attributes)
    try {
      return await work({ traceparent: traceparentOf(span), setAttributes, markFailed })
    } catch (error) {
      markFailed()
      throw error
    } finally {
      span.end()
    }
  }
}
