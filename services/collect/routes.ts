import type { FastifyInstance, FastifyReply } from 'fastify'
import { errorResponses } from '../../infra/http/schemas.ts'
import { maxBodyBytes, sessionsPath } from '../../infra/wire/collect/constants.ts'
import { receiveBatch } from './batch.ts'
import { type BodyParams, binaryType, requireBinary } from './body-request.ts'
import { continuityCookie } from './cookie.ts'
import { addPreflight, answerOrigin, answerStrayPreflight, errorCors, refuseOrigin } from './cors.ts'
import type { CollectDeps } from './deps.ts'
import { createDocumentCache, type DocumentCache } from './documents.ts'
import { networkCheckPath, networkRoutes, pingPath } from './network.ts'
import { type OpenBody, openBodySchema } from './open-body.ts'
import { receiveResult } from './results.ts'
import {
  batchHeadersSchema,
  batchResponseSchema,
  binaryBodySchema,
  openResponseSchema,
  resultHeadersSchema,
  resultResponseSchema,
} from './schemas.ts'
import { openSession } from './sessions.ts'

export type { CollectDeps, HandOffRequest } from './deps.ts'

const documentPath = `${sessionsPath}/:sessionId/documents/:documentId`
const batchesPath = `${documentPath}/batches`
const resultsPath = `${documentPath}/results`
const openBodyLimit = 256 * 1024
const jsonType = 'application/json; charset=utf-8'

/** The collect protocol (docs/collect-protocol.md), in a scope of its own for CORS and the binary parser. */
export function collectRoutes(app: FastifyInstance, deps: CollectDeps): void {
  const cache = createDocumentCache(deps.rememberedDocuments ?? 20_000)
  app.addErrorHeaders(errorCors)
  app.addHook('onRequest', answerStrayPreflight)
  app.register(async (scope) => {
    scope.addHook('onRequest', answerOrigin)
    addPreflight(scope, [sessionsPath, batchesPath, resultsPath, networkCheckPath], 'POST, OPTIONS')
    addPreflight(scope, [pingPath], 'GET, OPTIONS')
    networkRoutes(scope, deps)
    scope.register(async (keyed) => {
      keyed.addHook('onError', refuseOrigin)
      keyed.addHook('onError', deps.auth.refundOtherClient)
      const onRequest = deps.auth.requirePublishable()
      sessionRoute(keyed, { deps, cache, onRequest })
      keyed.register(async (binary) => bodyRoutes(binary, { deps, cache, onRequest }))
    })
  })
}

interface RouteOptions {
  deps: CollectDeps
  cache: DocumentCache
  onRequest: ReturnType<CollectDeps['auth']['requirePublishable']>
}

function sessionRoute(app: FastifyInstance, options: RouteOptions): void {
  const schema = {
    operationId: 'openCollectSession',
    tags: ['Collect'],
    summary: 'Open a session or a further document of it',
    body: openBodySchema,
    response: { 200: openResponseSchema, ...errorResponses(400, 401, 403, 413, 415, 422, 429) },
  }
  const { onRequest } = options
  const routeOptions = { bodyLimit: openBodyLimit, config: { frequent: true }, schema, onRequest }
  app.post<{ Body: OpenBody }>(sessionsPath, routeOptions, async (request, reply) => {
    const { answer, continuity } = await openSession(request, options)
    return reply
      .header('set-cookie', continuityCookie(continuity))
      .header('cache-control', 'no-store')
      .send(answer)
  })
}

const encrypted = { consumes: [binaryType], body: binaryBodySchema }
const bodyErrors = errorResponses(401, 403, 409, 410, 413, 415, 422, 429)
const acceptAll = () => () => true
const bodyOptions = { bodyLimit: maxBodyBytes, config: { frequent: true }, validatorCompiler: acceptAll }

/** Bodies are bytes and nothing else; they are handled without validation by schema, which would be most of the cost. */
function bodyRoutes(app: FastifyInstance, options: RouteOptions): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(binaryType, { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.addHook('preParsing', requireBinary)
  const route = (path: string, receive: typeof receiveBatch, schema: object) =>
    app.post<{ Params: BodyParams }>(
      path,
      { ...bodyOptions, onRequest: options.onRequest, schema },
      async (request, reply) => sendJson(reply, await receive(request, options)),
    )
  route(batchesPath, receiveBatch, {
    operationId: 'sendCollectBatch',
    tags: ['Collect'],
    summary: 'Send an encrypted observation batch',
    headers: batchHeadersSchema,
    ...encrypted,
    response: { 200: batchResponseSchema, ...bodyErrors },
  })
  route(resultsPath, receiveResult, {
    operationId: 'handOffCollectSession',
    tags: ['Collect'],
    summary: 'Hand the session off: the sealed token',
    headers: resultHeadersSchema,
    ...encrypted,
    response: { 200: resultResponseSchema, ...bodyErrors },
  })
}

function sendJson(reply: FastifyReply, json: string): FastifyReply {
  return reply.header('content-type', jsonType).header('cache-control', 'no-store').send(json)
}
