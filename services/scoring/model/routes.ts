import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import type { Auth } from '../../../infra/access/auth.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { listModelChanges } from '../../../projections/policies/queries.ts'
import type { ScoringModelRow } from '../../../projections/policies/tables.ts'
import { iso } from '../../../projections/sessions/decision-shape.ts'
import { type InForce, modelInForce, modelToCome } from './in-force.ts'
import { modelId, type ScoringModel, standardModel } from './model.ts'
import { storedModel } from './own-model.ts'
import { currentModelSchema, type modelSchema } from './schemas.ts'

interface KnownModel {
  id: string
  model: ScoringModel
  /** Epoch milliseconds; null = it was never another. */
  effectiveAt: number | null
}

/** The model of an organization's decisions, or of those of everybody who has no model of their own. */
async function findModel(
  db: Db,
  organizationId: string | null,
  at: number,
): Promise<{ current: KnownModel; next: KnownModel | undefined }> {
  const changes = await listModelChanges(db, organizationId)
  const next = modelToCome(changes, at)
  return { current: known(modelInForce(changes, at)), next: next && known(next) }
}

function known({ change, since }: InForce<ScoringModelRow>): KnownModel {
  const { document = null } = change ?? {}
  const model = document === null ? standardModel : storedModel(document)
  return { id: modelId(model), model, effectiveAt: since }
}

/** `GET /v1/scoring/model`. */
export function scoringModelRoutes(
  app: FastifyInstance,
  { pool, auth, clock }: { pool: Db; auth: Auth; clock: Clock },
): void {
  endpoint(app, {
    route: 'GET /v1/scoring/model',
    auth: auth.requireSecret('sessions:read'),
    operationId: 'getScoringModel',
    tag: 'Sessions',
    summary: 'Retrieve the model by which sessions are scored now',
    description:
      'Requires the `sessions:read` secret-key scope. Every score follows from the signals that fired and this document.',
    answers: { 200: single(currentModelSchema) },
    async run(request) {
      const { organizationId } = auth.scope(request)
      const { current, next } = await findModel(pool, organizationId, clock())
      return { data: { ...json(current), next: next ? json(next) : null } }
    },
  })
}

function json({ id, model, effectiveAt }: KnownModel): z.output<typeof modelSchema> {
  const effective_at = effectiveAt === null ? null : iso(effectiveAt)
  const is_standard = id === modelId(standardModel)
  return { object: 'scoring_model', id, is_standard, effective_at, document: model }
}
