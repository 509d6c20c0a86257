import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { createApp } from '../../../infra/http/app.ts'

/** Creates an app without routes, which by default logs nothing. */
export const createTestApp = (options: Partial<Parameters<typeof createApp>[0]> = {}) =>
  createApp({
    logger: pino({ level: 'silent' }),
    random: randomBytes,
    publicUrl: 'https://tidegate.example',
    ...options,
  })
