import type { RequestListener, ServerResponse } from 'node:http'
import { ApiError } from '../../infra/errors/errors.ts'
import { errorEnvelope, errorHeaders } from '../../infra/http/error-response.ts'
import { requestId } from '../../infra/ids.ts'
import { corsHeaders, isCollect, preflightHeaders } from '../collect/cors.ts'
import type { CoreOptions } from './dependencies.ts'
import { publicUrlOf } from './http.ts'

/**
 * Returns a listener that answers every request, probes included, with 503 until the server has started. The response
 * has the form and CORS headers of the running server, so that clients retry and pages can read it.
 */
export function answerWhileStarting({
  config,
  random,
}: Pick<CoreOptions, 'config' | 'random'>): RequestListener {
  return (request, response) => {
    // The body is read first, because closing the connection earlier resets it and the sender may not get the response.
    request.resume().once('end', () => {
      const { url = '', method, headers } = request
      const cors = isCollect({ url }) ? corsHeaders({ headers }) : {}
      const common = { ...cors, connection: 'close', 'x-request-id': requestId(random) }
      if (method === 'OPTIONS' && isCollect({ url }))
        response.writeHead(204, { ...common, ...preflightHeaders('GET, POST, OPTIONS') }).end()
      else refuse(response, common, publicUrlOf(config, request.socket.localPort ?? 0))
    })
  }
}

function refuse(
  response: ServerResponse,
  headers: Record<string, string> & { 'x-request-id': string },
  publicUrl: string,
): void {
  const error = new ApiError('service.unavailable', { message: 'The server is starting.' })
  const body = JSON.stringify(
    errorEnvelope(error, { requestId: headers['x-request-id'], publicUrl }),
  )
  response
    .writeHead(error.status, {
      ...headers,
      ...errorHeaders(error),
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
    })
    .end(body)
}
