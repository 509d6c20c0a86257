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
import type { ReadShares } from '../access/read-shares.ts'
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
  /** For a route without a body: rejects a body with members, which a caller would expect to have an effect. */
  noBody?: ParameterSet
  /** Response schemas by status, including `meta`. The result of `run` is sent with the first status. */
  answers: Record<number, z.ZodType>
  /** Error statuses in addition to those that `completePaths` derives from the credential and the body. */
  errors?: number[]
  /** Runs before validation, so the parts of the request may still have any type. */
  before?: (request: EndpointRequest<Params, Query, Body>) => void | Promise<void>
  /** Returns the response without `meta.request_id`, or undefined if it has replied itself. */
  run: (
    request: EndpointRequest<Params, Query, Body>,
    context: RunContext,
  ) => Result | Promise<Result>
  /** For a route of the read pool: divides its connections between organizations. */
  shares?: ReadShares | undefined
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
  /** Completes a result to the response with status and `meta`, as `Idempotency.run` stores it. */
  answer: (part: object) => { status: number; body: object }
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
    noBody,
    answers,
    errors = [],
    before,
    run,
    shares,
    settings,
    ...rest
  } = endpoint
  const { operationId, tag, summary, description, params, query, body, ...config } = rest
  const [method = '', url = ''] = route.split(' ')
  const bodyErrors = noBody ? [422] : []
  const [defaultStatus = 200] = Object.keys(answers).map(Number)
  const schema = {
    operationId,
    tags: [tag],
    summary,
    ...(description && { description }),
    ...(params && { params }),
    ...(query && { querystring: query }),
    ...(body && { body }),
    response: { ...answers, ...errorResponses(...errors, ...bodyErrors) },
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
      ...(noBody ? [refuseBody(noBody)] : []),
    ],
    handler: async (request, reply) => {
      const answer = createAnswer(request, defaultStatus)
      const work = async () => run(request, { reply, answer })
      const result = shares ? await shares.run(request, work) : await work()
      if (result === undefined) return
      const { status, body } = answer(result)
      reply.code(status)
      return body
    },
  })
}

const createAnswer =
  ({ id }: FastifyRequest, status: number) =>
  (part: object) => ({
    status,
    body: {
      ...part,
      meta: {
        ...('meta' in part && typeof part.meta === 'object' ? part.meta : {}),
        request_id: id,
      },
    },
  })

/** Creates a hook that throws 422 for any body but `{}`: a caller would expect an ignored member to have an effect. */
function refuseBody(parameterSet: ParameterSet): preValidationHookHandler {
  return ({ body, routeOptions }, _reply, done) => {
    const fields = membersOf(body)
    if (fields.length === 0) return done()
    done(invalidFields({ fields, parameter_set: parameterSet }, routeOptions.config.bodyCode))
  }
}

function membersOf(body: unknown): FieldIssue[] {
  if (body === undefined) return []
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return [{ name: 'body', issue: 'invalid_type', expected: 'an empty object, or no body' }]
  }
  return Object.keys(body).map((name) => ({ name, issue: 'not_allowed' }))
}
