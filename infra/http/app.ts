import type { Socket } from 'node:net'
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { validatorCompiler } from 'fastify-type-provider-zod'
import type { EdgeHeaders } from '../config.ts'
import { ApiError, filledError, type ValidationCode } from '../errors/errors.ts'
import { newRequestId, type Random } from '../ids.ts'
import { errorFields } from '../telemetry.ts'
import { errorEnvelope, errorHeaders, respondToClientError, toApiError } from './error-response.ts'
import { trimForwardedFor } from './forwarded.ts'
import { decorateHandshake } from './handshake.ts'
import { healthRoutes, type ReadinessCheck } from './health.ts'
import { parseJsonOnly } from './json-body.ts'
import { notFoundPage, notFoundPageHeaders, wantsNotFoundPage } from './not-found-page.ts'
import { openapiRoutes } from './openapi.ts'

/** Function that returns additional headers of an error response, by lower-case name. */
type ErrorHeaders = (request: FastifyRequest, error: ApiError) => Record<string, string>

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Adds headers to all error responses, also if no route matches: unknown path, wrong method, malformed URL.
     */
    addErrorHeaders(headersOf: ErrorHeaders): void
  }
  interface FastifyContextConfig {
    /** `details.parameter_set` of validation errors. */
    parameterSet?: string
    /** Error code for an invalid body. Default: request.validation_failed. */
    bodyErrorCode?: ValidationCode
    /**
     * Runs the checks beyond the schema on the valid members of a body that fails its schema, so that one error reports
     * every problem. See `validMembersCheck`.
     */
    checkValidMembers?: (request: FastifyRequest) => void
    /** This POST takes an Idempotency-Key although it returns neither 201 nor 202. */
    idempotent?: boolean
    /** Polled every few seconds by machines, so logged at debug level only. */
    probe?: boolean
    /** Gets most of the traffic, so successful requests are logged at debug level only. Metrics count them all. */
    isHighVolume?: boolean
  }
}

export interface AppOptions {
  logger: FastifyBaseLogger
  random: Random
  /** CIDRs of proxies whose X-Forwarded-For is trusted. */
  trustedProxies?: string[]
  /** Headers with which those proxies forward clients' TLS and HTTP/2 fingerprints. */
  edgeHeaders?: EdgeHeaders | undefined
  publicUrl: string
  bodyLimit?: number
  checks?: ReadinessCheck[]
  /** Once true, `/readyz` returns 503 and every response closes its connection. */
  isStopping?: () => boolean
}

const jsonBodyLimit = 256 * 1024

/**
 * Creates the Fastify app with request ids, the error envelope, validation by zod schemas, health checks and the
 * OpenAPI document. Response schemas serve only that document: responses are serialized by JSON.stringify without
 * validation.
 */
export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const { logger, random, checks = [], isStopping = () => false } = options
  const publicUrl = options.publicUrl.replace(/\/+$/, '')
  const extraHeaders: ErrorHeaders[] = []
  const handleError = createErrorHandler({ logger, publicUrl, extraHeaders })
  const app = createServer(options, {
    frameworkErrors: handleError,
    clientErrorHandler: (error, socket) =>
      respondToClientError(error, socket, { requestId: newRequestId(random), publicUrl }),
  })
  app.decorateRequest('principal', null)
  decorateHandshake(app, options.edgeHeaders)
  app.decorate('addErrorHeaders', (headersOf: ErrorHeaders) => void extraHeaders.push(headersOf))
  // Hooks that run for every request use callbacks: a promise each would cost more than their work.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    // Checked here because Node's own error response has neither envelope nor request id.
    if (!request.headers.host && !isHttp10Probe(request))
      done(new ApiError('request.malformed', { message: 'The Host header is missing.' }))
    else done()
  })
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (isStopping()) reply.header('connection', 'close')
    done()
  })
  logRequests(app, logger)
  app.setErrorHandler(handleError)
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(() => (data) => JSON.stringify(data))
  parseJsonOnly(app)
  rejectUnrouted(app)
  await openapiRoutes(app, { publicUrl })
  healthRoutes(app, [...checks, { name: 'stopping', check: async () => failIf(isStopping()) }])
  return app
}

function failIf(isStopping: boolean): void {
  if (isStopping) throw new Error('the server is stopping')
}

type FrameworkHandlers = {
  frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) => void
  clientErrorHandler: (error: { code?: string }, socket: Socket) => void
}

function createServer(
  { logger, random, trustedProxies = [], bodyLimit = jsonBodyLimit }: AppOptions,
  handlers: FrameworkHandlers,
) {
  const app: FastifyInstance = fastify({
    loggerInstance: withoutChildren(logger),
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'request_id',
    }),
    genReqId: () => newRequestId(random),
    trustProxy: trustedProxies.length > 0 ? trustedProxies : false,
    bodyLimit,
    requestTimeout: 30_000,
    // While the app closes, requests on open connections still get a response, which then closes the connection.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 2048 },
    http: { requireHostHeader: false },
    ...handlers,
  })
  if (trustedProxies.length > 0) app.addHook('onRequest', trimForwardedFor)
  // Node itself would reply to an unknown Expect header with a bare 417.
  app.server.on('checkExpectation', (request, response) =>
    app.server.emit('request', request, response),
  )
  return app
}

// Simple load balancers probe with HTTP/1.0, which has no Host header.
function isHttp10Probe({ raw, routeOptions }: FastifyRequest): boolean {
  return raw.httpVersion === '1.0' && routeOptions.config?.probe === true
}

// Log calls pass the request id themselves: a child logger per request would cost more than all log lines.
function withoutChildren(logger: FastifyBaseLogger): FastifyBaseLogger {
  const shared: FastifyBaseLogger = Object.create(logger)
  shared.child = () => shared
  return shared
}

interface ErrorHandlerOptions {
  logger: FastifyBaseLogger
  publicUrl: string
  extraHeaders: ErrorHeaders[]
}

function createErrorHandler({ logger, publicUrl, extraHeaders }: ErrorHandlerOptions) {
  return (thrown: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const { checkValidMembers: check, ...options } = request.routeOptions.config ?? {}
    const checkValidMembers = check && (() => check(request))
    const error = toApiError(thrown, { ...options, checkValidMembers })
    logFailure(logger, error, request)
    for (const headersOf of extraHeaders) reply.headers(headersOf(request, error))
    if (error.code === 'request.not_found' && wantsNotFoundPage(request)) {
      reply
        .code(404)
        .headers({ ...notFoundPageHeaders, 'x-request-id': request.id })
        .send(notFoundPage(request.id))
      return
    }
    reply
      .code(error.status)
      .headers({ ...errorHeaders(error), 'x-request-id': request.id })
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(errorEnvelope(error, { requestId: request.id, publicUrl })))
  }
}

/** Logs one line per response, without URL and IP address: both may identify a person. */
function logRequests(app: FastifyInstance, logger: FastifyBaseLogger): void {
  const isDebugLogged = logger.level === 'debug' || logger.level === 'trace'
  app.addHook('onResponse', (request, reply, done) => {
    const isDebug = isDebugOnly(request, reply)
    if (isDebug && !isDebugLogged) return done()
    const fields = {
      request_id: request.id,
      method: request.method,
      route: request.routeOptions.url ?? null,
      status: reply.statusCode,
      duration_ms: Math.round(reply.elapsedTime * 100) / 100,
      organization_id: request.principal?.organizationId ?? null,
    }
    if (isDebug) logger.debug(fields, 'request')
    else logger.info(fields, 'request')
    done()
  })
}

function isDebugOnly({ routeOptions }: FastifyRequest, { statusCode }: FastifyReply): boolean {
  const { probe, isHighVolume } = routeOptions.config ?? {}
  return probe === true || (isHighVolume === true && statusCode < 400)
}

function logFailure(logger: FastifyBaseLogger, error: ApiError, request: FastifyRequest): void {
  if (error.status < 500) return
  const fields = {
    request_id: request.id,
    route: request.routeOptions.url ?? null,
    code: error.code,
    cause: errorFields(error.cause),
  }
  if (error.status === 503) logger.warn(fields, 'request rejected, retryable')
  else logger.error(fields, 'request failed')
}

interface RoutePath {
  pattern: RegExp
  methods: Set<string>
}

/**
 * Rejects requests without a route, whatever the body: 405 with `Allow` if the path has other methods, else 404. Call
 * before adding routes.
 */
function rejectUnrouted(app: FastifyInstance): void {
  const paths = new Map<string, RoutePath>()
  app.addHook('onRoute', ({ url, method }) => {
    const path = paths.get(url) ?? { pattern: patternOf(url), methods: new Set() }
    for (const name of [method].flat()) path.methods.add(name)
    paths.set(url, path)
  })
  // Runs before Fastify looks at the body, because it would reject a QUERY request for its content type first.
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    done(request.is404 ? unroutedError(request, [...paths.values()]) : null)
  })
}

function unroutedError({ url, method }: FastifyRequest, paths: RoutePath[]): ApiError {
  const path = url.split('?', 1)[0] ?? ''
  const matching = paths.filter(({ pattern }) => pattern.test(path))
  const methods = [...new Set(matching.flatMap((route) => [...route.methods]))].sort()
  if (methods.length === 0 || methods.includes(method)) return new ApiError('request.not_found')
  const allow = methods.join(', ')
  return filledError('request.method_not_allowed', { methods: allow }, { headers: { allow } })
}

// Returns a RegExp for the full path of patterns such as `/v1/sessions/:sessionId` and `/docs/*`.
function patternOf(url: string): RegExp {
  const source = url
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/:[^/]+/g, '[^/]+')
    .replaceAll('*', '.*')
  return new RegExp(`^${source}$`)
}
