import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../errors/errors.ts'
import { unsupportedEncoding } from './error-response.ts'

/** JSON is the only body unless a route adds a parser. An empty one is accepted where the route takes no body. */
export function parseJsonOnly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, readJson)
}

async function readJson(request: FastifyRequest, body: Buffer): Promise<unknown> {
  if (!isPlain(request)) throw unsupportedEncoding()
  return body.length === 0 && !request.routeOptions.schema?.body ? undefined : parseJson(body)
}

/** Whether the body comes as it is. Nothing here inflates: a small body could become one without end. */
export function isPlain({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  const codings = headers['content-encoding']?.split(',') ?? []
  return codings.every((coding) => /^(?:identity)?$/i.test(coding.trim()))
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

// A member `__proto__` is one like others, and schemas decide what becomes of it.
function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(utf8.decode(body))
  } catch (cause) {
    throw new ApiError('request.malformed_body', { cause })
  }
}
