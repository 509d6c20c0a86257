import { Readable } from 'node:stream'
import type { FastifyRequest, preParsingAsyncHookHandler, RequestPayload } from 'fastify'
import { ApiError } from '../errors/errors.ts'
import type { Charge } from './rate-limit.ts'

/** What a request costs, from its parsed body; undefined where that is no JSON. At least 1. */
export type CostOf = (body: unknown) => number

/**
 * preParsing hook that reads the body, calls `charge` with its cost before anything checks the body, and passes it
 * on unchanged. A body that cannot be read as JSON, because of its type, size or content, costs `costOf(undefined)`.
 */
export function chargeBody(
  costOf: CostOf,
  charge: (request: FastifyRequest, charge: Charge) => Promise<void>,
): preParsingAsyncHookHandler {
  return async (request, reply, payload) => {
    const { bodyLimit } = request.routeOptions
    const tooLarge = Number(request.headers['content-length']) > bodyLimit
    // The same reading of Content-Type as the parser's: a body that it takes must not be cheaper here.
    if (request.mediaType !== 'application/json' || tooLarge) {
      await charge(request, { reply, cost: costOf(undefined) })
      return payload
    }
    const body = await readAll(payload, bodyLimit)
    await charge(request, { reply, cost: costOf(body && parsed(body)) })
    // What is left of the body is not read, so nothing can follow on this connection.
    if (!body) throw new ApiError('request.payload_too_large', { headers: { connection: 'close' } })
    return Readable.from([body])
  }
}

/** The whole body, or undefined once it is longer than `limit` bytes. 400 when it ends too early. */
async function readAll(payload: RequestPayload, limit: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    // Destroying the request would also end the connection that the refusal goes out on.
    for await (const chunk of payload.iterator({ destroyOnReturn: false })) {
      length += chunk.length
      if (length > limit) return undefined
      chunks.push(chunk)
    }
  } catch (cause) {
    throw new ApiError('request.malformed_body', { cause })
  }
  return Buffer.concat(chunks)
}

/** As the body parser reads it: a byte order mark is skipped. undefined when it is no JSON. */
function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body))
  } catch {
    return undefined
  }
}
