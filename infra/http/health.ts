import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { ApiError } from '../errors/errors.ts'

export interface ReadinessCheck {
  name: string
  /** Rejects if the server cannot serve requests. */
  check(): Promise<void>
  /** On failure, `/readyz` still returns 200 and lists a warning. */
  isWarning?: boolean
}

/** A failed check whose message `/readyz` shows to the operator. */
export class NotReady extends Error {}

// `/readyz` must respond within two seconds, however busy the process is.
const checkTimeoutMs = 1500
const tags = ['Operations']
const response = { 200: z.strictObject({ status: z.literal('ok') }) }
const livezSchema = {
  operationId: 'getLiveness',
  tags,
  summary: 'Check liveness',
  description: 'Returns 200 while the process responds.',
  response,
}
const warnings = z
  .array(z.string())
  .optional()
  .describe('Problems for the operator to look at. Requests are still served.')
const readyzSchema = {
  operationId: 'getReadiness',
  tags,
  summary: 'Check readiness',
  description: 'Returns 200 if all dependencies respond. Otherwise 503 names the ones that fail.',
  response: { 200: z.strictObject({ status: z.literal('ok'), warnings }) },
}

export function healthRoutes(app: FastifyInstance, checks: ReadinessCheck[]): void {
  const config = { probe: true }
  app.get('/livez', { schema: livezSchema, config }, () => ({ status: 'ok' }))
  app.get('/readyz', { schema: readyzSchema, config }, async () => {
    const problems = (await Promise.all(checks.map(problemsOf))).flat()
    const { failures = [], warnings } = Object.groupBy(problems, ({ isWarning }) =>
      isWarning ? 'warnings' : 'failures',
    )
    if (failures.length === 0)
      return { status: 'ok', ...(warnings && { warnings: warnings.map(({ text }) => text) }) }
    const texts = failures.map(({ text }) => text).join(', ')
    throw new ApiError('service.unavailable', { message: `Not ready: ${texts}.` })
  })
}

async function problemsOf({
  name,
  check,
  isWarning = false,
}: ReadinessCheck): Promise<{ text: string; isWarning: boolean }[]> {
  const timeout = AbortSignal.timeout(checkTimeoutMs)
  const expired = new Promise<never>((_, reject) => {
    timeout.addEventListener('abort', () => reject(timeout.reason))
  })
  return Promise.race([check(), expired]).then(
    () => [],
    (error: unknown) => [
      { isWarning, text: error instanceof NotReady ? `${name} (${error.message})` : name },
    ],
  )
}
