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
import { type Random, requestId } from '../ids.ts'
import { loggedError } from '../telemetry.ts'
import { answerClientError, errorEnvelope, errorHeaders, toApiError } from './error-response.ts'
import { believeAddresses } from './forwarded.ts'
import { addHandshakes } from './handshake.ts'
import { healthRoutes, type ReadinessCheck } from './health.ts'
import { parseJsonOnly } from './json-body.ts'
import { openapiRoutes } from './openapi.ts'
import { seeksPage, unknownPage, unknownPageHeaders } from './unknown-page.ts'

/** Headers of an error answer beside those that the error itself brings, by lower-case name. */
type ErrorHeaders = (request: FastifyRequest, error: ApiError) => Record<string, string>

declare module 'fastify' {
  interface FastifyInstance {
    /** For errors that no hook of a route sees: no such path, another method, an unreadable URL. */
    addErrorHeaders(headers: ErrorHeaders): void
  }
  interface FastifyContextConfig {
    /** Goes into details.parameter_set of a refusal. */
    parameterSet?: string
    /** The code of a refused body. Default: request.validation_failed. */
    bodyCode?: ValidationCode
    /**
     * Refuses what the checks behind the schema would refuse of the body. Asked when the schema refuses it, so that the
     * caller is told everything at once. See `fittingCheck`.
     */
    checkFitting?: (request: FastifyRequest) => void
    /** This POST takes an Idempotency-Key although it does not answer 201 or 202. */
    idempotent?: boolean
    /** A machine asks every few seconds: logged at debug level only. */
    probe?: boolean
    /** Most requests are of this route: logged at debug level unless refused. /metrics counts them all. */
    frequent?: boolean
  }
}

export interface AppOptions {
  logger: FastifyBaseLogger
  random: Random
  /** CIDRs of proxies whose X-Forwarded-For is believed. */
  trustedProxies?: string[]
  /** Headers of theirs that say how clients began TLS and HTTP/2. */
  edgeHeaders?: EdgeHeaders | undefined
  publicUrl: string
  bodyLimit?: number
  checks?: ReadinessCheck[]
  /** Once it is true, `/readyz` says 503 and every answer is the last of its connection. */
  isStopping?: () => boolean
}

const jsonBodyLimit = 256 * 1024

/**
 * Request ids, one error envelope, validation by zod schemas, health, and the interface description. Response schemas
 * are for that description alone: answers are written by JSON.stringify as they are.
 */
export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const { logger, random, checks = [], isStopping = () => false } = options
  const publicUrl = options.publicUrl.replace(/\/+$/, '')
  const added: ErrorHeaders[] = []
  const answer = createErrorAnswer({ logger, publicUrl, added })
  const app = createServer(options, {
    frameworkErrors: answer,
    clientErrorHandler: (error, socket) =>
      answerClientError(error, socket, { requestId: requestId(random), publicUrl }),
  })
  app.decorateRequest('principal', null)
  addHandshakes(app, options.edgeHeaders)
  app.decorate('addErrorHeaders', (headers: ErrorHeaders) => void added.push(headers))
  // Hooks of every request call back: a promise each would cost more than what they do.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    // Node's own refusal of a request without Host would have neither envelope nor request id.
    if (!request.headers.host && !isOldProbe(request))
      done(new ApiError('request.malformed', { message: 'The Host header is missing.' }))
    else done()
  })
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (isStopping()) reply.header('connection', 'close')
    done()
  })
  logRequests(app, logger)
  app.setErrorHandler(answer)
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(() => (data) => JSON.stringify(data))
  parseJsonOnly(app)
  answerUnrouted(app)
  await openapiRoutes(app, { publicUrl })
  healthRoutes(app, [...checks, { name: 'stopping', check: async () => refuseIf(isStopping()) }])
  return app
}

function refuseIf(stopping: boolean): void {
  if (stopping) throw new Error('the server is stopping')
}

type FrameworkAnswers = {
  frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) => void
  clientErrorHandler: (error: { code?: string }, socket: Socket) => void
}

function createServer(
  { logger, random, trustedProxies = [], bodyLimit = jsonBodyLimit }: AppOptions,
  answers: FrameworkAnswers,
) {
  const app: FastifyInstance = fastify({
    loggerInstance: withoutChildren(logger),
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'request_id',
    }),
    genReqId: () => requestId(random),
    trustProxy: trustedProxies.length > 0 ? trustedProxies : false,
    bodyLimit,
    requestTimeout: 30_000,
    // While closing, requests on open connections are still answered; the connection then ends.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 2048 },
    http: { requireHostHeader: false },
    ...answers,
  })
  if (trustedProxies.length > 0) app.addHook('onRequest', believeAddresses)
  // An Expect that Node does not know would be answered by a bare 417.
  app.server.on('checkExpectation', (request, response) =>
    app.server.emit('request', request, response),
  )
  return app
}

// HTTP/1.0 has no Host header, and simple load balancers probe with it.
function isOldProbe({ raw, routeOptions }: FastifyRequest): boolean {
  return raw.httpVersion === '1.0' && routeOptions.config?.probe === true
}

// Lines carry the request id themselves. A logger for each request would cost more than all lines together.
function withoutChildren(logger: FastifyBaseLogger): FastifyBaseLogger {
  const shared: FastifyBaseLogger = Object.create(logger)
  shared.child = () => shared
  return shared
}

interface ErrorAnswerOptions {
  logger: FastifyBaseLogger
  publicUrl: string
  added: ErrorHeaders[]
}

function createErrorAnswer({ logger, publicUrl, added }: ErrorAnswerOptions) {
  return (thrown: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const { checkFitting, ...refusal } = request.routeOptions.config ?? {}
    const checkRest = checkFitting && (() => checkFitting(request))
    const error = toApiError(thrown, { ...refusal, checkRest })
    logFailure(logger, error, request)
    for (const headers of added) reply.headers(headers(request, error))
    if (error.code === 'request.not_found' && seeksPage(request)) {
      reply
        .code(404)
        .headers({ ...unknownPageHeaders, 'x-request-id': request.id })
        .send(unknownPage(request.id))
      return
    }
    reply
      .code(error.status)
      .headers({ ...errorHeaders(error), 'x-request-id': request.id })
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(errorEnvelope(error, { requestId: request.id, publicUrl })))
  }
}

/** One line for each answered request. It has neither the URL nor an address: both may name a person. */
function logRequests(app: FastifyInstance, logger: FastifyBaseLogger): void {
  const logsMinor = logger.level === 'debug' || logger.level === 'trace'
  app.addHook('onResponse', (request, reply, done) => {
    const minor = isMinor(request, reply)
    if (minor && !logsMinor) return done()
    const fields = {
      request_id: request.id,
      method: request.method,
      route: request.routeOptions.url ?? null,
      status: reply.statusCode,
      duration_ms: Math.round(reply.elapsedTime * 100) / 100,
      organization_id: request.principal?.organizationId ?? null,
    }
    if (minor) logger.debug(fields, 'request')
    else logger.info(fields, 'request')
    done()
  })
}

function isMinor({ routeOptions }: FastifyRequest, { statusCode }: FastifyReply): boolean {
  const { probe, frequent } = routeOptions.config ?? {}
  return probe === true || (frequent === true && statusCode < 400)
}

function logFailure(logger: FastifyBaseLogger, error: ApiError, request: FastifyRequest): void {
  if (error.status < 500) return
  const fields = {
    request_id: request.id,
    route: request.routeOptions.url ?? null,
    code: error.code,
    cause: loggedError(error.cause),
  }
  if (error.status === 503) logger.warn(fields, 'request refused for now')
  else logger.error(fields, 'request failed')
}

interface KnownPath {
  pattern: RegExp
  methods: Set<string>
}

/**
 * Answers 405 with `Allow` when the path exists under other methods, else 404, whatever the body. Call before any route
 * is added.
 */
function answerUnrouted(app: FastifyInstance): void {
  const paths = new Map<string, KnownPath>()
  app.addHook('onRoute', ({ url, method }) => {
    const known = paths.get(url) ?? { pattern: patternOf(url), methods: new Set() }
    for (const one of [method].flat()) known.methods.add(one)
    paths.set(url, known)
  })
  // Before the framework looks at the body: it would ask a QUERY for its content type first.
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    done(request.is404 ? unrouted(request, [...paths.values()]) : null)
  })
}

function unrouted({ url, method }: FastifyRequest, paths: KnownPath[]): ApiError {
  const path = url.split('?', 1)[0] ?? ''
  const matching = paths.filter(({ pattern }) => pattern.test(path))
  const methods = [...new Set(matching.flatMap((known) => [...known.methods]))].sort()
  if (methods.length === 0 || methods.includes(method)) return new ApiError('request.not_found')
  const allow = methods.join(', ')
  return filledError('request.method_not_allowed', { methods: allow }, { headers: { allow } })
}

// Matches the whole path of patterns such as `/v1/sessions/:sessionId` and `/docs/*`.
function patternOf(url: string): RegExp {
  const source = url
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/:[^/]+/g, '[^/]+')
    .replaceAll('*', '.*')
  return new RegExp(`^${source}$`)
}
