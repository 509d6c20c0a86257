import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { checkLiveAccess } from '../../infra/access/key-checks.ts'
import { engineFamilies, engineVersionOf } from '../../infra/challenges/challenges.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { single } from '../../infra/http/schemas.ts'
import { timeOrderedId } from '../../infra/ids.ts'
import type { EventLog } from '../../infra/log/port.ts'
import { readLearningProgress } from '../../projections/answers/learned.ts'
import { decideEngineAnswers, teachingQuestions } from '../../projections/answers/teaching.ts'
import { type ConsoleAuthOptions, requireAdministrator, requireLogin } from './auth.ts'
import { environmentHeader, requestedEnvironment } from './decide.ts'
import { type Engines, engine, enginesSchema } from './schemas.ts'

export interface EngineOptions extends ConsoleAuthOptions {
  log: Pick<EventLog, 'append'>
  codec: Pick<EventCodec, 'toRecordWithCause'>
  /** True if an admin's browser teaches its engine automatically at login, as under `tidegate dev`. */
  teachesAtLogin: boolean
}

const answersBody = z.strictObject({
  answers: z.array(z.strictObject({ id: z.int(), answer: z.string().max(128) })).max(20_000),
})
const routeDefaults = { auth: [], tag: 'Console' }

/** Adds routes for learning progress by engine, and for an admin's browser to teach its engine. */
export function engineRoutes(app: FastifyInstance, options: EngineOptions): void {
  const { pool, keyring, clock, random } = options

  endpoint(app, {
    ...routeDefaults,
    responses: { 200: single(enginesSchema) },
    route: 'GET /engines',
    operationId: 'listEngines',
    summary: 'Get the learning progress of each browser engine',
    async run(request) {
      const { session } = await requireLogin(request, options)
      const organizationId = session.organization.id
      const environment = requestedEnvironment(session, request.headers[environmentHeader])
      const learning = await readLearningProgress({ pool, now: clock(), keys: keyring.all })
      const engines = engineFamilies.map((engine) => {
        const progress = learning.progress({ organizationId, environment, class: engine })
        const { isLearned: is_learned, visitors, needed: visitors_needed } = progress
        return { engine, is_learned, visitors, visitors_needed }
      })
      const data: Engines = {
        engines,
        own_engine: engineVersionOf(userAgentOf(request))?.family ?? null,
        teaches_at_login: options.teachesAtLogin,
      }
      return { data }
    },
  })

  endpoint(app, {
    ...routeDefaults,
    responses: {
      200: single(z.strictObject({ questions: z.array(z.looseObject({ id: z.int() })) })),
    },
    route: 'GET /engines/questions',
    operationId: 'listEngineQuestions',
    summary: 'List the questions for a browser that teaches its engine',
    async run(request) {
      await requireTeacher(request, options)
      return { data: { questions: teachingQuestions(keyring.all, clock()) } }
    },
  })

  endpoint(app, {
    ...routeDefaults,
    body: answersBody,
    settings: { bodyLimit: 2 * 1024 * 1024 },
    responses: { 200: single(z.strictObject({ engine })) },
    route: 'POST /engines',
    operationId: 'teachEngine',
    summary: "Store this browser's answers as correct for the organization",
    async run(request) {
      const { id, name, organization } = await requireTeacher(request, options)
      const now = clock()
      const lesson = decideEngineAnswers({
        organizationId: organization.id,
        by: name,
        now,
        answers: request.body.answers,
        questions: teachingQuestions(keyring.all, now),
        userAgent: userAgentOf(request),
      })
      if (typeof lesson === 'string')
        throw new ApiError('request.validation_failed', {
          message: lesson,
          details: { fields: [{ name: 'answers', issue: 'invalid' }] },
        })
      const eventId = timeOrderedId('evt', now, random)
      const meta = { eventId, time: now, organizationId: organization.id, environment: null }
      const cause = { actor: { type: 'person', id }, request_id: request.id } as const
      await options.log.append([
        options.codec.toRecordWithCause(
          { type: 'EngineAnswersLearned', data: lesson },
          meta,
          cause,
        ),
      ])
      return { data: { engine: engine.parse(lesson.engine_family) } }
    },
  })
}

const userAgentOf = ({ headers }: FastifyRequest): string => headers['user-agent'] ?? ''

async function requireTeacher(request: FastifyRequest, options: ConsoleAuthOptions) {
  const session = await requireAdministrator(request, options, 'teach engines')
  const { environments } = session
  checkLiveAccess({ type: 'person', environments }, { subject: 'Taught engines' })
  return session
}
