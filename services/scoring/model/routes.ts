import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import type { Auth } from '../../../infra/access/auth.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import type { Clock } from '../../../infra/ids.ts'
import { isoOrNull } from '../../../infra/iso.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { listModelChanges } from '../../../projections/policies/queries.ts'
import type { ScoringModelRow } from '../../../projections/policies/tables.ts'
import { type ModelInForce, modelInForce, scheduledModel } from './in-force.ts'
import { modelId, type ScoringModel, standardModel } from './model.ts'
import { parseStoredModel } from './parse-model.ts'
import { currentModelSchema, type modelSchema } from './schemas.ts'

interface EffectiveModel {
  id: string
  model: ScoringModel
  /** Epoch milliseconds; null = the model was never changed. */
  effectiveAt: number | null
}

/** Returns the model of an organization, or the default model if the id is null. */
async function findModel(
  db: Db,
  organizationId: string | null,
  at: number,
): Promise<{ current: EffectiveModel; next: EffectiveModel | undefined }> {
  const changes = await listModelChanges(db, organizationId)
  const next = scheduledModel(changes, at)
  return { current: effectiveModel(modelInForce(changes, at)), next: next && effectiveModel(next) }
}

function effectiveModel({ change, since }: ModelInForce<ScoringModelRow>): EffectiveModel {
  const { document = null } = change ?? {}
  const model = document === null ? standardModel : parseStoredModel(document)
  return { id: modelId(model), model, effectiveAt: since }
}

interface ModelRouteOptions {
  pool: Db
  auth: Auth
  clock: Clock
  /** Display names by signal. */
  signalNames: Record<string, string>
}

/** Defines `GET /v1/scoring/model`. */
export function scoringModelRoutes(
  app: FastifyInstance,
  { pool, auth, clock, signalNames: signal_names }: ModelRouteOptions,
): void {
  endpoint(app, {
    route: 'GET /v1/scoring/model',
    auth: auth.requireSecret('sessions:read'),
    operationId: 'getScoringModel',
    tag: 'Sessions',
    summary: 'Retrieve the scoring model',
    description:
      'Requires the `sessions:read` secret-key scope. Returns the model in effect and, if a change is scheduled, the next one. A score depends only on the signals that fired and this document.',
    responses: { 200: single(currentModelSchema) },
    async run(request) {
      const { organizationId } = auth.dataScope(request)
      const { current, next } = await findModel(pool, organizationId, clock())
      return { data: { ...modelJson(current), next: next ? modelJson(next) : null, signal_names } }
    },
  })
}

function modelJson({ id, model, effectiveAt }: EffectiveModel): z.output<typeof modelSchema> {
  const effective_at = isoOrNull(effectiveAt)
  const is_standard = id === modelId(standardModel)
  return { object: 'scoring_model', id, is_standard, effective_at, document: model }
}
