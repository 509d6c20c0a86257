import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { z } from 'zod'
import { createBudget, overBudget } from '../../infra/access/budget.ts'
import { sourceOf } from '../../infra/access/source.ts'
import { ApiError, type ErrorCode } from '../../infra/errors/errors.ts'
import { errorResponses } from '../../infra/http/schemas.ts'
import { maxBodyBytes, sessionsPath } from '../../infra/wire/collect/protocol.ts'
import { limitInFlight } from './admission.ts'
import { handOffsOfDocument, type ResultOptions, receiveBatch, receiveResult } from './bodies.ts'
import { createDocumentCache, type DocumentCache } from './documents.ts'
import { type BodyParams, binaryType, type CollectDeps, requireBinary } from './requests.ts'
import {
  batchHeadersSchema,
  batchResponseSchema,
  binaryBodySchema,
  bodyParamsSchema,
  type OpenBody,
  openBodySchema,
  openResponseSchema,
  resultHeadersSchema,
  resultResponseSchema,
} from './schemas.ts'
import { continuityCookie, openSession } from './sessions.ts'
import { limitVolume } from './volume.ts'

export type { CollectDeps, HandOffRequest } from './requests.ts'

const documentPath = `${sessionsPath}/:sessionId/documents/:documentId`
const batchesPath = `${documentPath}/batches`
const resultsPath = `${documentPath}/results`
const openBodyLimit = 256 * 1024
const jsonType = 'application/json; charset=utf-8'

/** The collect protocol (docs/reference/collect-protocol.md), in a scope of its own for CORS and the binary parser. */
export function collectRoutes(app: FastifyInstance, deps: CollectDeps): void {
  const cache = createDocumentCache(deps.rememberedDocuments ?? 20_000)
  const handOffs = createBudget({ clock: deps.clock, ...handOffsOfDocument })
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
      limitInFlight(keyed, deps.admission)
      limitVolume(keyed, deps)
      const onRequest = deps.auth.requirePublishable()
      sessionRoute(keyed, { deps, cache, onRequest })
      keyed.register(async (binary) => bodyRoutes(binary, { deps, cache, handOffs, onRequest }))
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

const encrypted = { consumes: [binaryType], params: bodyParamsSchema, body: binaryBodySchema }
const bodyErrors = errorResponses(401, 403, 409, 410, 413, 415, 422, 429)
const acceptAll = () => () => true
const bodyOptions = { bodyLimit: maxBodyBytes, config: { frequent: true }, validatorCompiler: acceptAll }

// Bodies are bytes and nothing else; they are handled without validation by schema, which would be most of the cost.
function bodyRoutes(app: FastifyInstance, options: RouteOptions & Pick<ResultOptions, 'handOffs'>): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(binaryType, { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.addHook('preParsing', requireBinary)
  const route = (path: string, receive: typeof receiveResult, schema: object) =>
    app.post<{ Params: BodyParams }>(
      path,
      { ...bodyOptions, onRequest: options.onRequest, schema },
      async (request, reply) => sendJson(reply, await receive(request, options, reply)),
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

const allowHeaders = 'Authorization, Content-Type, X-Client-Key, X-Batch-Seq'
const exposeHeaders = 'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Cost, Retry-After, X-Request-Id'
const maxAgeSeconds = '7200'
const originErrors: ErrorCode[] = ['auth.origin_not_allowed', 'auth.native_key_not_allowed']

/** What lets the page that asks read the answer of a collect request. */
export function corsHeaders({ headers }: Pick<FastifyRequest, 'headers'>): Record<string, string> {
  if (!headers.origin) return { vary: 'Origin' }
  return {
    vary: 'Origin',
    'access-control-allow-origin': headers.origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': exposeHeaders,
  }
}

// onRequest: lets the page that asks read the answer, errors included, and send the continuity cookie.
function answerOrigin(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  reply.headers(corsHeaders(request))
  done()
}

function errorCors(request: FastifyRequest, { code }: ApiError): Record<string, string> {
  return isCollect(request) && !originErrors.includes(code) ? corsHeaders(request) : {}
}

// onRequest of the root: without its preflight a page could not read that there is nothing at a path.
function answerStrayPreflight(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  const stray = request.is404 && request.method === 'OPTIONS' && isCollect(request)
  if (stray) sendPreflight(reply.headers(corsHeaders(request)), 'GET, POST, OPTIONS')
  else done()
}

export function isCollect({ url }: Pick<FastifyRequest, 'url'>): boolean {
  return url.startsWith('/v2/collect/')
}

// onError: takes the permission back where the key does not allow the origin.
async function refuseOrigin(_request: FastifyRequest, reply: FastifyReply, error: Error): Promise<void> {
  if (!(error instanceof ApiError) || !originErrors.includes(error.code)) return
  reply.removeHeader('access-control-allow-origin')
  reply.removeHeader('access-control-allow-credentials')
}

// Preflight for the paths: 204. A preflight carries no key, so every origin may go on to the request itself,
// which then has to be allowed by its key.
function addPreflight(app: FastifyInstance, paths: string[], methods: string): void {
  for (const path of paths) {
    app.options(path, { schema: { hide: true } }, async (_request, reply) => sendPreflight(reply, methods))
  }
}

function sendPreflight(reply: FastifyReply, methods: string): FastifyReply {
  return reply.code(204).headers(preflightHeaders(methods)).send()
}

export const preflightHeaders = (methods: string) => ({
  'access-control-allow-methods': methods,
  'access-control-allow-headers': allowHeaders,
  'access-control-max-age': maxAgeSeconds,
})

const pingPath = '/v2/collect/pings/:pingId'
const networkCheckPath = '/v2/collect/network-checks'

const pingId = /^[A-Za-z0-9_-]{1,128}$/
const maxCheckBytes = 4096

// What anybody may ask for without a key: each source, and all together, in this process.
const keyless = { source: { perSecond: 10, burst: 50 }, all: { perSecond: 500, burst: 1000 } }

function limitKeyless({ clock }: CollectDeps): onRequestHookHandler {
  const ofSource = createBudget({ clock, ...keyless.source })
  const ofAll = createBudget({ clock, ...keyless.all })
  return ({ ip }, _reply, done) => {
    const isWithin = ofSource.spend(sourceOf(ip)) && ofAll.spend('all')
    done(isWithin ? undefined : overBudget())
  }
}

/** Both leave nothing: no part of the server reads what a client finds out about its network. */
function networkRoutes(app: FastifyInstance, deps: CollectDeps): void {
  const onRequest = limitKeyless(deps)
  app.get<{ Params: { pingId: string } }>(
    pingPath,
    {
      onRequest,
      schema: {
        operationId: 'pingCollect',
        tags: ['Collect'],
        summary: 'Measure the way to the server',
        params: z.object({ pingId: z.string().meta({ pattern: pingId.source }) }),
        response: { 204: z.null(), ...errorResponses(404, 429) },
      },
    },
    async ({ params }, reply) => {
      if (!pingId.test(params.pingId)) throw new ApiError('request.not_found')
      return reply.code(204).header('cache-control', 'no-store').send()
    },
  )
  app.post(
    networkCheckPath,
    {
      onRequest,
      bodyLimit: maxCheckBytes,
      schema: {
        operationId: 'reportNetworkCheck',
        tags: ['Collect'],
        summary: 'Report a network check',
        body: z.record(z.string(), z.unknown()).describe('At most 4 KiB.'),
        response: { 202: z.object({ ack: z.literal(true) }), ...errorResponses(400, 413, 415, 422, 429) },
      },
    },
    async (_request, reply) => reply.code(202).send({ ack: true }),
  )
}
