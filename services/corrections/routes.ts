import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Auth } from '../../infra/access/auth.ts'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { bodyId, organizationParams, pathId, single, timestamp } from '../../infra/http/schemas.ts'
import type { Idempotency } from '../../infra/idempotency/idempotency.ts'
import { type Clock, isId } from '../../infra/ids.ts'
import { characterCount, isOneLine, isVisible } from '../../infra/text.ts'
import { iso } from '../../projections/sessions/decision-shape.ts'
import { type LinkedVisitors, mergeVisitors, splitVisitor } from './commands.ts'
import { maxReassigned, noSuchVisitor } from './decide.ts'

export interface CorrectionOptions {
  auth: Auth
  idempotency: Idempotency
  decideAs: DecideAs
  clock: Clock
  visitors: LinkedVisitors
}

const tag = 'Visitor fingerprints'
const path = '/v1/organizations/:organizationId/visitors/:visitorId'
const params = organizationParams.extend({ visitorId: pathId('vid') })
const about =
  'Requires the `visitors:manage` secret-key scope. `session.fingerprint.calculated` is sent again for each session. Rebuilds repeat it.'

const maxReasonCharacters = 500
const reason = z
  .string()
  .trim()
  .refine(
    (text) => isVisible(text) && isOneLine(text) && characterCount(text) <= maxReasonCharacters,
    {
      error: `1 to ${maxReasonCharacters} characters on one line, no control characters`,
    },
  )
  .meta({ minLength: 1, maxLength: maxReasonCharacters })
  .describe(
    'Why, in your words. It is kept for ever: no name, address or other data about a person.',
  )

/** `POST /v1/organizations/{organizationId}/visitors/{visitorId}/splits` and `.../merges`. */
export function correctionRoutes(app: FastifyInstance, options: CorrectionOptions): void {
  splitRoute(app, options)
  mergeRoute(app, options)
}

const splitBody = z
  .strictObject({
    session_ids: z
      .array(bodyId('sid'))
      .min(1)
      .max(maxReassigned)
      .refine((ids) => new Set(ids).size === ids.length, 'must be distinct')
      .describe('Sessions of the visitor, not all of them.'),
    reason,
  })
  .meta({ id: 'VisitorSplitRequest' })

const splitSchema = z
  .strictObject({
    object: z.literal('visitor_split'),
    visitor_id: z.string(),
    new_visitor_id: z.string().describe('Who the sessions are of from now on.'),
    session_ids: z.array(z.string()),
    reason: z.string(),
    created_at: timestamp,
  })
  .meta({ id: 'VisitorSplit' })

function splitRoute(app: FastifyInstance, options: CorrectionOptions): void {
  const { auth, idempotency } = options
  endpoint(app, {
    route: `POST ${path}/splits`,
    auth: auth.requireOwnOrganization('visitors:manage'),
    operationId: 'splitVisitor',
    tag,
    summary: 'Give sessions that are of somebody else a visitor of their own',
    description: `${about} What their clients keep leads to the new visitor. A session without any that may be of either gets another visitor. Repeated, it changes nothing and answers what the first request did.`,
    params,
    body: splitBody,
    parameterSet: 'visitor_split',
    answers: { 201: single(splitSchema) },
    errors: [404],
    run: (request, { reply, answer }) =>
      idempotency.run({ request, reply }, async ({ now }) => {
        const visitorId = checkedVisitorId(request.params)
        const { session_ids: sessionIds, reason } = request.body
        const command = { scope: auth.scope(request), visitorId, sessionIds, reason }
        const said = await splitVisitor(depsOf(request, options, now), command)
        const data: z.output<typeof splitSchema> = {
          object: 'visitor_split',
          visitor_id: visitorId,
          new_visitor_id: said.other_visitor_id,
          session_ids: said.session_ids,
          reason: said.reason,
          created_at: iso(said.corrected_at),
        }
        return answer({ data })
      }),
  })
}

const mergeBody = z
  .strictObject({
    visitor_id: bodyId('vid').describe(
      `Who is the same: all its sessions, at most ${maxReassigned}, become the visitor's. It is not found any more.`,
    ),
    reason,
  })
  .meta({ id: 'VisitorMergeRequest' })

const mergeSchema = z
  .strictObject({
    object: z.literal('visitor_merge'),
    visitor_id: z.string(),
    merged_visitor_id: z.string(),
    session_ids: z.array(z.string()).describe('Those that were moved.'),
    reason: z.string(),
    created_at: timestamp,
  })
  .meta({ id: 'VisitorMerge' })

function mergeRoute(app: FastifyInstance, options: CorrectionOptions): void {
  const { auth, idempotency } = options
  endpoint(app, {
    route: `POST ${path}/merges`,
    auth: auth.requireOwnOrganization('visitors:manage'),
    operationId: 'mergeVisitors',
    tag,
    summary: 'Make two visitors one',
    description: `${about} What clients of both keep leads to the one that stays, and no longer parts them.`,
    params,
    body: mergeBody,
    parameterSet: 'visitor_merge',
    answers: { 201: single(mergeSchema) },
    errors: [404],
    run: (request, { reply, answer }) =>
      idempotency.run({ request, reply }, async ({ now }) => {
        const visitorId = checkedVisitorId(request.params)
        const { visitor_id: otherId, reason } = request.body
        const command = { scope: auth.scope(request), visitorId, otherId, reason }
        const sessionIds = await mergeVisitors(depsOf(request, options, now), command)
        const data: z.output<typeof mergeSchema> = {
          object: 'visitor_merge',
          visitor_id: visitorId,
          merged_visitor_id: otherId,
          session_ids: sessionIds,
          reason,
          created_at: iso(now),
        }
        return answer({ data })
      }),
  })
}

function checkedVisitorId({ visitorId }: { visitorId: string }): string {
  if (!isId('vid', visitorId)) throw noSuchVisitor()
  return visitorId
}

function depsOf(
  request: FastifyRequest,
  { auth, decideAs, visitors }: CorrectionOptions,
  now: number,
) {
  return { decide: decideAs(auth.actor(request), request), clock: () => now, visitors }
}
