import type pino from 'pino'
import { createLogger, type Logger } from '../../infra/telemetry.ts'

/** Returns the logger of a server: readable lines on a terminal, JSON lines anywhere else. */
export async function createServerLogger(level: pino.LevelWithSilent): Promise<Logger> {
  if (!process.stdout.isTTY) return createLogger(level)
  const { default: pretty } = await import('pino-pretty')
  return createLogger(
    level,
    pretty({ translateTime: 'SYS:HH:MM:ss', singleLine: true, sync: true }),
  )
}
