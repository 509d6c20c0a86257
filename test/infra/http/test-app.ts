import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { createApp } from '../../../infra/http/app.ts'

/** An app without routes, which logs nothing unless told otherwise. */
export const createTestApp = (options: Partial<Parameters<typeof createApp>[0]> = {}) =>
  createApp({
    logger: pino({ level: 'silent' }),
    random: randomBytes,
    publicUrl: 'https://tidegate.example',
    ...options,
  })
