import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Config } from '../../infra/config.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { errorEnvelope, errorHeaders } from '../../infra/http/error-response.ts'
import { type Random, requestId } from '../../infra/ids.ts'
import { corsHeaders, isCollect, preflightHeaders } from '../collect/cors.ts'
import { publicUrlOf } from './http.ts'

interface Starting {
  config: Config
  random: Random
}

/**
 * What a process answers until it can answer: 503 as the running server writes it, so that clients come back, and pages
 * may read it. Probes get it, too.
 */
export function answerWhileStarting({ config, random }: Starting): RequestListener {
  return (request, response) => {
    // A connection that ends before the body was read resets, and the sender may never see the answer.
    request.resume().once('end', () => {
      const { url = '', method, headers } = request
      const cors = isCollect({ url }) ? corsHeaders({ headers }) : {}
      const common = { ...cors, connection: 'close', 'x-request-id': requestId(random) }
      if (method === 'OPTIONS' && isCollect({ url }))
        response.writeHead(204, { ...common, ...preflightHeaders('GET, POST, OPTIONS') }).end()
      else refuse(response, { common, publicUrl: publicUrlOf(config, portOf(request)) })
    })
  }
}

interface Refusal {
  common: Record<string, string> & { 'x-request-id': string }
  publicUrl: string
}

function refuse(response: ServerResponse, { common, publicUrl }: Refusal): void {
  const error = new ApiError('service.unavailable', { message: 'The server is starting.' })
  const body = JSON.stringify(errorEnvelope(error, { requestId: common['x-request-id'], publicUrl }))
  response
    .writeHead(error.status, {
      ...common,
      ...errorHeaders(error),
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
    })
    .end(body)
}

const portOf = ({ socket }: IncomingMessage): number => socket.localPort ?? 0
