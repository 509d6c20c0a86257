import type { Config } from '../config.ts'
import type { Logger } from '../telemetry.ts'
import type { Otlp } from './port.ts'
import { otlpSettings } from './settings.ts'

const flushMs = 1000

/** Returns the milliseconds that OTLP may add to a shutdown. */
export const otlpStopMs = (config: Config): number => (otlpSettings(config) ? flushMs : 0)

/** Starts OTLP export. Returns undefined, without loading the OpenTelemetry SDK, if it is not configured. */
export async function openOtlp(config: Config, logger: Logger): Promise<Otlp | undefined> {
  const settings = otlpSettings(config)
  if (!settings) return undefined
  const { startOtlp } = await import('./start.ts')
  return startOtlp(settings, { logger, flushMs })
}
