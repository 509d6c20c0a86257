import type pg from 'pg'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { followProjection } from '../../../infra/event-store/follow.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { listNewModelChanges } from '../../../projections/policies/queries.ts'
import {
  type CurrentModel,
  type ModelChange,
  type ModelOf,
  modelInForce,
  modelToCome,
} from './in-force.ts'
import { modelId, type ScoringModel, standardModel } from './model.ts'
import { storedModel } from './own-model.ts'

/** Those of a time. It looks for changes first, where that was not done lately. */
export type ModelsAt = (at: number, db: Db) => Promise<ModelOf>

interface FollowOptions {
  pool: pg.Pool
  applied: Pick<Applied, 'onChange'>
  logger: Logger
  clock: Clock
}

interface KnownChange extends ModelChange {
  event_id: string
  model: ScoringModel
}

// A change takes effect 30 seconds after it was decided, at the earliest.
const staleMs = 20_000

/** Follows which model is whose. Resolves when that is known, so that no start decides by another one. */
export async function followModels({ pool, applied, logger, clock }: FollowOptions): Promise<{
  modelsAt: ModelsAt
  stop(): Promise<void>
}> {
  let known = { at: -Infinity, changes: new Map<string | null, KnownChange[]>() }

  async function read(db: Db): Promise<void> {
    const at = clock()
    const models = new Map(
      [...known.changes.values()].flat().map(({ event_id, model }) => [event_id, model]),
    )
    const rows = await listNewModelChanges(db, [...models.keys()])
    const changes = rows.map(({ document, ...row }) => {
      const model =
        models.get(row.event_id) ?? (document === null ? standardModel : storedModel(document))
      return { ...row, model }
    })
    // A look that began later may have ended before.
    if (at >= known.at) known = { at, changes: Map.groupBy(changes, (one) => one.organization_id) }
  }

  async function modelsAt(at: number, db: Db) {
    if (Math.abs(at - known.at) > staleMs) await read(db)
    const { changes } = known
    const found = new Map<string, CurrentModel>()
    return (organizationId: string) => {
      const current = found.get(organizationId) ?? currentModel(changes, organizationId, at)
      found.set(organizationId, current)
      return current
    }
  }

  const following = { projection: 'policies', what: 'scoring models', read: () => read(pool) }
  const { stop } = await followProjection({ applied, logger }, following)
  logOld(
    logger,
    [...known.changes.values()].flatMap((changes) => changes.at(-1) ?? []),
  )
  return { modelsAt, stop }
}

function currentModel(
  all: ReadonlyMap<string | null, KnownChange[]>,
  organizationId: string,
  at: number,
): CurrentModel {
  const changes = { own: all.get(organizationId) ?? [], everybody: all.get(null) ?? [] }
  return {
    model: modelInForce(changes, at).change?.model ?? standardModel,
    until: modelToCome(changes, at)?.since ?? Infinity,
  }
}

function logOld(logger: Logger, newest: KnownChange[]): void {
  const models = newest.filter(({ model }) => model.version !== standardModel.version)
  if (models.length === 0) return
  const ids = models.map(({ model_id }) => model_id)
  logger.warn(
    { models: ids, standard: modelId(standardModel) },
    'scoring models were made from another standard model than that of this release, and stay as they are',
  )
}
