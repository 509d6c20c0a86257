import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Auth } from '../../infra/access/auth.ts'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { bodyId, organizationParams, pathId, single, timestamp } from '../../infra/http/schemas.ts'
import type { Idempotency } from '../../infra/idempotency/idempotency.ts'
import { type Clock, isId } from '../../infra/ids.ts'
import { iso } from '../../infra/iso.ts'
import { characterCount, isOneLine, isVisible } from '../../infra/text.ts'
import { mergeVisitors, splitVisitor, type VisitorLinks } from './commands.ts'
import { maxSessionsPerCorrection, noSuchVisitor } from './decide.ts'

export interface CorrectionOptions {
  auth: Auth
  idempotency: Idempotency
  decideAs: DecideAs
  clock: Clock
  visitors: VisitorLinks
}

const tag = 'Visitor fingerprints'
const path = '/v1/organizations/:organizationId/visitors/:visitorId'
const params = organizationParams.extend({ visitorId: pathId('vid') })
const requirements = 'Requires the `visitors:manage` secret-key scope.'
const effects = '`session.fingerprint.calculated` is raised again for each moved session.'

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
    'Reason for the correction. Kept permanently in the audit log, so leave out personal data.',
  )

/** Adds the routes that split and merge visitors. */
export function correctionRoutes(app: FastifyInstance, options: CorrectionOptions): void {
  splitRoute(app, options)
  mergeRoute(app, options)
}

const splitBody = z
  .strictObject({
    session_ids: z
      .array(bodyId('sid'))
      .min(1)
      .max(maxSessionsPerCorrection)
      .refine((ids) => new Set(ids).size === ids.length, 'must be distinct')
      .describe('Sessions of the visitor to move. At least one must remain.'),
    reason,
  })
  .meta({ id: 'VisitorSplitRequest' })

const splitSchema = z
  .strictObject({
    object: z.literal('visitor_split'),
    visitor_id: z.string(),
    new_visitor_id: z.string().describe('Visitor that the sessions now belong to.'),
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
    summary: 'Split a visitor',
    description: `${requirements} Moves sessions of a visitor to a new visitor. Ids stored by their clients then resolve to the new visitor. A later session without a stored id that resembles both visitors is treated as a new visitor. ${effects} A repeated request changes nothing and returns the first response.`,
    params,
    body: splitBody,
    parameterSet: 'visitor_split',
    responses: { 201: single(splitSchema) },
    errors: [404],
    run: (request, { reply, toResponse }) =>
      idempotency.run({ request, reply }, async ({ now }) => {
        const visitorId = requireVisitorId(request.params)
        const { session_ids: sessionIds, reason } = request.body
        const command = { scope: auth.dataScope(request), visitorId, sessionIds, reason }
        const split = await splitVisitor(depsOf(request, options, now), command)
        const data: z.output<typeof splitSchema> = {
          object: 'visitor_split',
          visitor_id: visitorId,
          new_visitor_id: split.other_visitor_id,
          session_ids: split.session_ids,
          reason: split.reason,
          created_at: iso(split.corrected_at),
        }
        return toResponse({ data })
      }),
  })
}

const mergeBody = z
  .strictObject({
    visitor_id: bodyId('vid').describe(
      `Visitor to merge into the one in the path. All its sessions (at most ${maxSessionsPerCorrection}) move; afterwards its id returns 404 with \`merged_into\`.`,
    ),
    reason,
  })
  .meta({ id: 'VisitorMergeRequest' })

const mergeSchema = z
  .strictObject({
    object: z.literal('visitor_merge'),
    visitor_id: z.string(),
    merged_visitor_id: z.string(),
    session_ids: z.array(z.string()).describe('Sessions that were moved.'),
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
    summary: 'Merge two visitors',
    description: `${requirements} Moves all sessions of another visitor to this one. Ids stored by clients of either visitor then resolve to the remaining one. An earlier id that reappears does not split it again. ${effects}`,
    params,
    body: mergeBody,
    parameterSet: 'visitor_merge',
    responses: { 201: single(mergeSchema) },
    errors: [404],
    run: (request, { reply, toResponse }) =>
      idempotency.run({ request, reply }, async ({ now }) => {
        const visitorId = requireVisitorId(request.params)
        const { visitor_id: mergedVisitorId, reason } = request.body
        const command = { scope: auth.dataScope(request), visitorId, mergedVisitorId, reason }
        const sessionIds = await mergeVisitors(depsOf(request, options, now), command)
        const data: z.output<typeof mergeSchema> = {
          object: 'visitor_merge',
          visitor_id: visitorId,
          merged_visitor_id: mergedVisitorId,
          session_ids: sessionIds,
          reason,
          created_at: iso(now),
        }
        return toResponse({ data })
      }),
  })
}

function requireVisitorId({ visitorId }: { visitorId: string }): string {
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
