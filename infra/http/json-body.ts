import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../errors/errors.ts'
import { unsupportedEncoding } from './error-response.ts'

/** Accepts only JSON bodies, unless a route adds a parser, and empty bodies on routes without a body schema. */
export function parseJsonOnly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, readJson)
}

async function readJson(request: FastifyRequest, body: Buffer): Promise<unknown> {
  if (!isUncompressed(request)) throw unsupportedEncoding()
  return body.length === 0 && !request.routeOptions.schema?.body ? undefined : parseJson(body)
}

/** Returns true for a body without compression. The server inflates none, because it could be a zip bomb. */
export function isUncompressed({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  const codings = headers['content-encoding']?.split(',') ?? []
  return codings.every((coding) => /^(?:identity)?$/i.test(coding.trim()))
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

// Keeps a member `__proto__`, which schemas then treat like any other.
function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(utf8.decode(body))
  } catch (cause) {
    throw new ApiError('request.malformed_body', { cause })
  }
}
