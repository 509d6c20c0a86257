import type { RequestListener, ServerResponse } from 'node:http'
import { ApiError } from '../../infra/errors/errors.ts'
import { errorEnvelope, errorHeaders } from '../../infra/http/error-response.ts'
import { newRequestId } from '../../infra/ids.ts'
import { corsHeaders, isCollectRequest, preflightHeaders } from '../collect/cors.ts'
import type { CoreOptions } from './dependencies.ts'
import { publicUrlOf } from './http.ts'

/**
 * Returns a listener that responds 503 to every request, probes included, until the server has started. The response
 * has the body and CORS headers of the running server, so that clients retry and pages can read it.
 */
export function respondWhileStarting({
  config,
  random,
}: Pick<CoreOptions, 'config' | 'random'>): RequestListener {
  return (request, response) => {
    // Read the body first: closing the connection earlier resets it, and the sender may not get the response.
    request.resume().once('end', () => {
      const { url = '', method, headers } = request
      const cors = isCollectRequest({ url }) ? corsHeaders({ headers }) : {}
      const common = { ...cors, connection: 'close', 'x-request-id': newRequestId(random) }
      if (method === 'OPTIONS' && isCollectRequest({ url }))
        response.writeHead(204, { ...common, ...preflightHeaders('GET, POST, OPTIONS') }).end()
      else sendUnavailable(response, common, publicUrlOf(config, request.socket.localPort ?? 0))
    })
  }
}

function sendUnavailable(
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
