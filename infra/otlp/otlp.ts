import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import type { Config } from '../config.ts'
import type { EventLog } from '../log/port.ts'
import type { Logger } from '../telemetry.ts'
import { otlpSettings } from './settings.ts'

export type SpanAttributes = Record<string, string | number>

export interface TracedWork {
  name: string
  /** The span that this one is below, as a `traceparent`; undefined begins a trace. */
  parent: string | undefined
  attributes: SpanAttributes
}

export interface WorkSpan {
  /** Names this span to what follows from it. */
  traceparent: string
  set(attributes: SpanAttributes): void
  fail(): void
}

export interface Tracing {
  /** The log, whose records carry their trace on. */
  log(log: EventLog): EventLog
  /** Call before routes are added. */
  requests(app: FastifyInstance): void
  /** A request to somebody else. Nothing tells them of the trace. */
  run<T>(what: TracedWork, work: (span: WorkSpan) => Promise<T>): Promise<T>
}

export interface Otlp {
  /** undefined where no traces are sent. */
  tracing: Tracing | undefined
  /** Sends what is left, within `otlpStopMs`. */
  stop(): Promise<void>
}

export interface OtlpParts {
  registry: Registry
  logger: Logger
}

const flushMs = 1000

/** How much longer a stop may take than without OTLP. */
export const otlpStopMs = (config: Config): number => (otlpSettings(config) ? flushMs : 0)

/** undefined where nothing is sent: then no module of OpenTelemetry's SDK is loaded. */
export async function openOtlp(config: Config, parts: OtlpParts): Promise<Otlp | undefined> {
  const settings = otlpSettings(config)
  if (!settings) return undefined
  const { startOtlp } = await import('./start.ts')
  return startOtlp(settings, { ...parts, flushMs })
}
