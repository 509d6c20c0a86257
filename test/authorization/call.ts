import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { freshAddress } from '../support/gate-flow.ts'
import type { Example } from './examples.ts'

const envelope = z.object({ error: z.object({ code: z.string(), message: z.string() }) })

/** Sends an example under the headers of a credential. */
export async function call(
  app: FastifyInstance,
  {
    example: { method, url, body, headers },
    given,
  }: { example: Example; given: Record<string, string> },
) {
  const isJson = typeof body === 'object' && !Buffer.isBuffer(body)
  const response = await app.inject({
    method,
    url,
    remoteAddress: freshAddress(),
    headers: { ...(isJson && { 'content-type': 'application/json' }), ...headers, ...given },
    ...(body !== undefined && { payload: isJson ? JSON.stringify(body) : body }),
  })
  const error = response.statusCode < 400 ? undefined : envelope.parse(response.json()).error
  return {
    status: response.statusCode,
    code: error?.code ?? null,
    charged: Number(response.headers['x-ratelimit-cost'] ?? 0) > 0,
    message: error?.message,
  }
}
