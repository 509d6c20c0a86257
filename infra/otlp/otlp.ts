import type { Config } from '../config.ts'
import type { Logger } from '../telemetry.ts'
import type { Otlp } from './port.ts'
import { otlpSettings } from './settings.ts'

const flushMs = 1000

/** Returns how many milliseconds OTLP may add to a shutdown. */
export const otlpStopMs = (config: Config): number => (otlpSettings(config) ? flushMs : 0)

/** Starts OTLP export. undefined if it is not configured; then the OpenTelemetry SDK is not loaded. */
export async function openOtlp(config: Config, logger: Logger): Promise<Otlp | undefined> {
  const settings = otlpSettings(config)
  if (!settings) return undefined
  const { startOtlp } = await import('./start.ts')
  return startOtlp(settings, { logger, flushMs })
}
