import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { ApiError } from '../errors/errors.ts'

/** `check` rejects when requests cannot be answered. */
export interface ReadinessCheck {
  name: string
  check(): Promise<void>
}

/** A reason that the answer gives, too. */
export class NotReady extends Error {}

// The answer has to be there within two seconds, however busy the process is.
const checkTimeoutMs = 1500
const tags = ['Operations']
const response = { 200: z.strictObject({ status: z.literal('ok') }) }
const livezSchema = { operationId: 'getLiveness', tags, summary: 'Whether the process answers', response }
const readyzSchema = {
  operationId: 'getReadiness',
  tags,
  summary: 'Whether everything that requests need answers too; 503 names what does not',
  response,
}

export function healthRoutes(app: FastifyInstance, checks: ReadinessCheck[]): void {
  const config = { probe: true }
  app.get('/livez', { schema: livezSchema, config }, () => ({ status: 'ok' }))
  app.get('/readyz', { schema: readyzSchema, config }, async () => {
    const failures = (await Promise.all(checks.map(failureOf))).flat()
    if (failures.length === 0) return { status: 'ok' }
    throw new ApiError('service.unavailable', { message: `Not ready: ${failures.join(', ')}.` })
  })
}

async function failureOf({ name, check }: ReadinessCheck): Promise<string[]> {
  const timeout = AbortSignal.timeout(checkTimeoutMs)
  const expired = new Promise<never>((_, reject) => {
    timeout.addEventListener('abort', () => reject(timeout.reason))
  })
  return Promise.race([check(), expired]).then(
    () => [],
    (error: unknown) => [error instanceof NotReady ? `${name} (${error.message})` : name],
  )
}
