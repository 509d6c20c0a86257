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
 * One route of the API, all of it in one place: who may call it, what it takes and answers, how it is described, and
 * what it does. The types of the request follow from the schemas.
 */
export interface Endpoint<Params, Query, Body> extends FastifyContextConfig {
  route: `${'GET' | 'POST' | 'PATCH' | 'DELETE'} /${string}`
  /** Hooks that refuse who may not call; none for everybody. The description says what they enforce (`enforcing`). */
  auth: onRequestHookHandler | onRequestHookHandler[]
  operationId: string
  tag: string
  summary: string
  description?: string
  params?: z.ZodType<Params>
  query?: z.ZodType<Query>
  body?: z.ZodType<Body>
  /** For a route that takes no body: one with members is refused, since a caller would expect them to have an effect. */
  noBody?: ParameterSet
  /** Schemas by status, with `meta`. What `run` returns is answered with the first status. */
  answers: Record<number, z.ZodType>
  /** Statuses of errors beside those that follow from the key and the body (`completePaths`). */
  errors?: number[]
  /** Runs before the parts of the request are validated, so that they may still be anything. */
  before?: (request: EndpointRequest<Params, Query, Body>) => void | Promise<void>
  /** Returns the answer, with nothing in `meta` but what others have not, or else undefined and has replied itself. */
  run: (
    request: EndpointRequest<Params, Query, Body>,
    answering: Answering,
  ) => Answer | Promise<Answer>
  /** For a route of the read pool: the connections that `run` shares with those of other organizations. */
  shares?: ReadShares | undefined
  settings?: Pick<RouteShorthandOptions, 'bodyLimit' | 'exposeHeadRoute' | 'preParsing'>
}

type EndpointRequest<Params, Query, Body> = FastifyRequest<Parts<Params, Query, Body>>

interface Parts<Params, Query, Body> {
  Params: Params
  Querystring: Query
  Body: Body
}

interface Answering {
  reply: FastifyReply
  /** The whole answer, as `Idempotency.run` has to know it. */
  answer: (part: object) => { status: number; body: object }
}

type Answer = object | undefined

/** Adds the route to the application and to its interface description. */
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
  const refusedBody = noBody ? [422] : []
  const [usual = 200] = Object.keys(answers).map(Number)
  const schema = {
    operationId,
    tags: [tag],
    summary,
    ...(description && { description }),
    ...(params && { params }),
    ...(query && { querystring: query }),
    ...(body && { body }),
    response: { ...answers, ...errorResponses(...errors, ...refusedBody) },
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
      const whole = answerOf(request, usual)
      const answered = async () => run(request, { reply, answer: whole })
      const part = shares ? await shares.run(request, answered) : await answered()
      if (part === undefined) return
      const { status, body } = whole(part)
      reply.code(status)
      return body
    },
  })
}

const answerOf =
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

/**
 * For a route that takes no body: 422 for anything but none or `{}`. A caller would expect an ignored member to have
 * an effect.
 */
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
