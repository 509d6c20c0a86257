import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  preValidationHookHandler,
  RouteShorthandOptions,
} from 'fastify'
import type { z } from 'zod'
import type { ReadLimiter } from '../access/read-limiter.ts'
import { type FieldIssue, invalidFields } from '../errors/errors.ts'
import type { ParameterSet } from './checked-fields.ts'
import { errorResponses } from './schemas.ts'

/**
 * The complete definition of an API route: authentication, request and response schemas, documentation and handler. The
 * request types are inferred from the schemas.
 */
export interface Endpoint<Params, Query, Body> extends FastifyContextConfig {
  route: `${'GET' | 'POST' | 'PATCH' | 'DELETE'} /${string}`
  /** Hooks that authorize the caller; none for a public route. `declareAccess` documents what they enforce. */
  auth: onRequestHookHandler | onRequestHookHandler[]
  operationId: string
  tag: string
  summary: string
  description?: string
  params?: z.ZodType<Params>
  query?: z.ZodType<Query>
  body?: z.ZodType<Body>
  /** For a route without a body: throws 422 with this `parameter_set` for any body but `{}`. */
  rejectBodyAs?: ParameterSet
  /** Response schemas by status, including `meta`. The result of `run` is sent with the first status. */
  responses: Record<number, z.ZodType>
  /** Error statuses in addition to those that `completePaths` derives from the credential and the body. */
  errors?: number[]
  /** Runs before validation, so the parts of the request may have any type. */
  beforeValidation?: (request: EndpointRequest<Params, Query, Body>) => void | Promise<void>
  /** Returns the response body without `meta.request_id`, or undefined if it has replied itself. */
  run: (
    request: EndpointRequest<Params, Query, Body>,
    context: RunContext,
  ) => Result | Promise<Result>
  /** For a route that uses the read pool: divides its connections between organizations. */
  readLimiter?: ReadLimiter | undefined
  settings?: Pick<RouteShorthandOptions, 'bodyLimit' | 'exposeHeadRoute' | 'preParsing'>
}

type EndpointRequest<Params, Query, Body> = FastifyRequest<Parts<Params, Query, Body>>

interface Parts<Params, Query, Body> {
  Params: Params
  Querystring: Query
  Body: Body
}

interface RunContext {
  reply: FastifyReply
  /** Adds status and `meta` to a result, which makes it the response that `Idempotency.run` stores. */
  toResponse: (result: object) => { status: number; body: object }
}

type Result = object | undefined

/** Registers the route, and with it its entry in the OpenAPI document. */
export function endpoint<Params = unknown, Query = unknown, Body = unknown>(
  app: FastifyInstance,
  endpoint: Endpoint<Params, Query, Body>,
): void {
  const {
    route,
    auth,
    rejectBodyAs,
    responses,
    errors = [],
    beforeValidation: before,
    run,
    readLimiter,
    settings,
    ...rest
  } = endpoint
  const { operationId, tag, summary, description, params, query, body, ...config } = rest
  const [method = '', url = ''] = route.split(' ')
  const bodyErrors = rejectBodyAs ? [422] : []
  const [defaultStatus = 200] = Object.keys(responses).map(Number)
  const schema = {
    operationId,
    tags: [tag],
    summary,
    ...(description && { description }),
    ...(params && { params }),
    ...(query && { querystring: query }),
    ...(body && { body }),
    response: { ...responses, ...errorResponses(...errors, ...bodyErrors) },
  }
  app.route<Parts<Params, Query, Body>>({
    method,
    url,
    schema,
    config,
    onRequest: auth,
    ...settings,
    preValidation: [
      ...(before ? [async (request: EndpointRequest<Params, Query, Body>) => before(request)] : []),
      ...(rejectBodyAs ? [createBodyRejection(rejectBodyAs)] : []),
    ],
    handler: async (request, reply) => {
      const toResponse = createResponseBuilder(request, defaultStatus)
      const work = async () => run(request, { reply, toResponse })
      const result = readLimiter ? await readLimiter.run(request, work) : await work()
      if (result === undefined) return
      const { status, body } = toResponse(result)
      reply.code(status)
      return body
    },
  })
}

const createResponseBuilder =
  ({ id }: FastifyRequest, status: number) =>
  (result: object) => ({
    status,
    body: {
      ...result,
      meta: {
        ...('meta' in result && typeof result.meta === 'object' ? result.meta : {}),
        request_id: id,
      },
    },
  })

// Rejects members instead of ignoring them, because a caller would expect them to have an effect.
function createBodyRejection(parameterSet: ParameterSet): preValidationHookHandler {
  return ({ body, routeOptions }, _reply, done) => {
    const fields = bodyIssues(body)
    if (fields.length === 0) return done()
    done(invalidFields({ fields, parameter_set: parameterSet }, routeOptions.config.bodyErrorCode))
  }
}

function bodyIssues(body: unknown): FieldIssue[] {
  if (body === undefined) return []
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return [{ name: 'body', issue: 'invalid_type', expected: 'an empty object, or no body' }]
  }
  return Object.keys(body).map((name) => ({ name, issue: 'not_allowed' }))
}
