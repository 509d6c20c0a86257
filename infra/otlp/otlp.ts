import type { Config } from '../config.ts'
import type { Logger } from '../telemetry.ts'
import type { Otlp } from './port.ts'
import { otlpSettings } from './settings.ts'

const flushMs = 1000

/** How much longer a stop may take than without OTLP. */
export const otlpStopMs = (config: Config): number => (otlpSettings(config) ? flushMs : 0)

/** undefined where nothing is sent: then no module of OpenTelemetry's SDK is loaded. */
export async function openOtlp(config: Config, logger: Logger): Promise<Otlp | undefined> {
  const settings = otlpSettings(config)
  if (!settings) return undefined
  const { startOtlp } = await import('./start.ts')
  return startOtlp(settings, { logger, flushMs })
}
