import type { FastifyInstance, FastifyReply } from 'fastify'
import { createBudget } from '../../infra/access/budget.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { errorResponses } from '../../infra/http/schemas.ts'
import { maxBodyBytes, sessionsPath } from '../../infra/wire/collect/protocol.ts'
import {
  batchResponseSchema,
  openResponseSchema,
  resultResponseSchema,
} from '../../infra/wire/collect/responses.ts'
import { limitInFlight } from './admission.ts'
import {
  addPreflight,
  allowOrigin,
  errorCorsHeaders,
  removeCorsHeaders,
  respondToUnknownPreflight,
} from './cors.ts'
import { createDocumentCache, type DocumentCache } from './documents.ts'
import { networkPaths, networkRoutes } from './network.ts'
import { handOffRate, type ReceiveOptions, receiveBody, receiveHandOff } from './receive.ts'
import { type BodyParams, binaryType, type CollectDeps, requireBinary } from './requests.ts'
import {
  batchHeadersSchema,
  binaryBodySchema,
  bodyPathParams,
  openBodySchema,
  resultHeadersSchema,
} from './schemas.ts'
import { continuityCookie, openSession } from './sessions.ts'
import { limitVolume } from './volume.ts'

export type { CollectDeps } from './requests.ts'

const documentPath = `${sessionsPath}/:sessionId/documents/:documentId`
const batchesPath = `${documentPath}/batches`
const resultsPath = `${documentPath}/results`
const openBodyLimit = 256 * 1024
const jsonType = 'application/json; charset=utf-8'
const tag = 'Collect'

/** Adds the collect protocol (docs/reference/collect-protocol.md), in a Fastify scope with CORS and a binary parser. */
export function collectRoutes(app: FastifyInstance, deps: CollectDeps): void {
  const cache = createDocumentCache()
  const handOffBudget = createBudget({ clock: deps.clock, ...handOffRate })
  app.addErrorHeaders(errorCorsHeaders)
  app.addHook('onRequest', respondToUnknownPreflight)
  app.register(async (scope) => {
    scope.addHook('onRequest', allowOrigin)
    addPreflight(
      scope,
      [sessionsPath, batchesPath, resultsPath, ...networkPaths.post],
      'POST, OPTIONS',
    )
    addPreflight(scope, networkPaths.get, 'GET, OPTIONS')
    networkRoutes(scope, deps)
    scope.register(async (keyed) => {
      keyed.addHook('onError', removeCorsHeaders)
      keyed.addHook('onError', deps.auth.refundWrongClient)
      limitInFlight(keyed, deps.admission)
      limitVolume(keyed, deps)
      const onRequest = deps.auth.requirePublishable()
      sessionRoute(keyed, { deps, cache, onRequest })
      keyed.register(async (binary) =>
        bodyRoutes(binary, { deps, cache, handOffBudget, onRequest }),
      )
    })
  })
}

interface RouteOptions {
  deps: CollectDeps
  cache: DocumentCache
  onRequest: ReturnType<CollectDeps['auth']['requirePublishable']>
}

function sessionRoute(app: FastifyInstance, options: RouteOptions): void {
  endpoint(app, {
    route: `POST ${sessionsPath}`,
    auth: options.onRequest,
    settings: { bodyLimit: openBodyLimit },
    isHighVolume: true,
    operationId: 'openCollectSession',
    tag,
    summary: 'Open a session or document',
    description:
      'Opens a new session or, with a `resumeToken`, another document of an existing one.',
    body: openBodySchema,
    responses: { 200: openResponseSchema },
    async run(request, { reply }) {
      const { response, continuity } = await openSession(request, options)
      return reply
        .header('set-cookie', continuityCookie(continuity))
        .header('cache-control', 'no-store')
        .send(response)
    },
  })
}

const encrypted = { consumes: [binaryType], params: bodyPathParams, body: binaryBodySchema }
const bodyErrors = errorResponses(409, 410)
const acceptUnvalidated = () => () => true
const bodyOptions = {
  bodyLimit: maxBodyBytes,
  config: { isHighVolume: true },
  validatorCompiler: acceptUnvalidated,
}

// Plain routes instead of `endpoint`: bodies are opaque bytes, and schema validation would be most of the cost.
function bodyRoutes(
  app: FastifyInstance,
  options: RouteOptions & Pick<ReceiveOptions, 'handOffBudget'>,
): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(binaryType, { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  )
  app.addHook('preParsing', requireBinary)
  const route = (path: string, receive: typeof receiveHandOff, schema: object) =>
    app.post<{ Params: BodyParams }>(
      path,
      { ...bodyOptions, onRequest: options.onRequest, schema },
      async (request, reply) => sendJson(reply, await receive(request, options, reply)),
    )
  route(batchesPath, (request, receiveOptions) => receiveBody(request, 'batches', receiveOptions), {
    operationId: 'sendCollectBatch',
    tags: [tag],
    summary: 'Send an observation batch',
    description:
      'Takes observations encrypted for the document. A repeated body gets the same response.',
    headers: batchHeadersSchema,
    ...encrypted,
    response: { 200: batchResponseSchema, ...bodyErrors },
  })
  route(resultsPath, receiveHandOff, {
    operationId: 'handOffCollectSession',
    tags: [tag],
    summary: 'Hand off a session',
    description: 'Takes the last observations and returns the sealed token with the decision.',
    headers: resultHeadersSchema,
    ...encrypted,
    response: { 200: resultResponseSchema, ...bodyErrors },
  })
}

function sendJson(reply: FastifyReply, json: string): FastifyReply {
  return reply.header('content-type', jsonType).header('cache-control', 'no-store').send(json)
}
