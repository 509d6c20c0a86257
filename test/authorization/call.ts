import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { freshAddress } from '../support/gate-flow.ts'
import type { Answer } from '../support/raw-http.ts'
import type { Example } from './endpoint.ts'

/** Sends an example without a socket, under more headers, as those of a credential. */
export async function sendExample(
  app: FastifyInstance,
  { method, url, body, headers, from = freshAddress() }: Example,
  given: Record<string, string> = {},
): Promise<Answer> {
  const isJson = typeof body === 'object' && !Buffer.isBuffer(body)
  const response = await app.inject({
    method,
    url,
    remoteAddress: from,
    headers: { ...(isJson && { 'content-type': 'application/json' }), ...headers, ...given },
    ...(body !== undefined && { payload: isJson ? JSON.stringify(body) : body }),
  })
  return { status: response.statusCode, headers: response.headers, body: response.body }
}

const envelope = z.object({ error: z.object({ code: z.string(), message: z.string() }) })

/** Returns what the matrix compares of an answer, and the message of a refusal. */
export async function call(
  app: FastifyInstance,
  { example, given }: { example: Example; given: Record<string, string> },
) {
  const { status, headers, body } = await sendExample(app, example, given)
  const error = status < 400 ? undefined : envelope.parse(JSON.parse(body)).error
  return {
    status,
    code: error?.code ?? null,
    charged: Number(headers['x-ratelimit-cost'] ?? 0) > 0,
    message: error?.message,
  }
}
