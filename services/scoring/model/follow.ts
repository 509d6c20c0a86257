import type pg from 'pg'
import type { AppliedOffsets } from '../../../infra/event-store/applied.ts'
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
  scheduledModel,
} from './in-force.ts'
import { modelId, type ScoringModel, standardModel } from './model.ts'
import { parseStoredModel } from './parse-model.ts'

/** Returns the models in force at a time. Reads the changes again if the last read is too old. */
export type ModelsAt = (at: number, db: Db) => Promise<ModelOf>

interface FollowOptions {
  pool: pg.Pool
  applied: Pick<AppliedOffsets, 'onChange'>
  logger: Logger
  clock: Clock
}

interface StoredChange extends ModelChange {
  event_id: string
  model: ScoringModel
}

// Less than the 30 seconds after which a change takes effect at the earliest, so no change is missed.
const staleMs = 20_000

/** Keeps all organizations' models in memory. Resolves after the first read, so no decision uses a wrong model. */
export async function followModels({ pool, applied, logger, clock }: FollowOptions): Promise<{
  modelsAt: ModelsAt
  stop(): Promise<void>
}> {
  let lastRead = { at: -Infinity, changes: new Map<string | null, StoredChange[]>() }

  async function read(db: Db): Promise<void> {
    const at = clock()
    const models = new Map(
      [...lastRead.changes.values()].flat().map(({ event_id, model }) => [event_id, model]),
    )
    const rows = await listNewModelChanges(db, [...models.keys()])
    const changes = rows.map(({ document, ...row }) => {
      const model =
        models.get(row.event_id) ?? (document === null ? standardModel : parseStoredModel(document))
      return { ...row, model }
    })
    // Reads can finish out of order, so ignore older ones.
    if (at >= lastRead.at)
      lastRead = { at, changes: Map.groupBy(changes, (change) => change.organization_id) }
  }

  async function modelsAt(at: number, db: Db) {
    if (Math.abs(at - lastRead.at) > staleMs) await read(db)
    const { changes } = lastRead
    const cache = new Map<string, CurrentModel>()
    return (organizationId: string) => {
      const current = cache.get(organizationId) ?? currentModel(changes, organizationId, at)
      cache.set(organizationId, current)
      return current
    }
  }

  const subscription = { projection: 'policies', label: 'scoring models', read: () => read(pool) }
  const { stop } = await followProjection({ applied, logger }, subscription)
  warnOfOutdatedModels(
    logger,
    [...lastRead.changes.values()].flatMap((changes) => changes.at(-1) ?? []),
  )
  return { modelsAt, stop }
}

function currentModel(
  stored: ReadonlyMap<string | null, StoredChange[]>,
  organizationId: string,
  at: number,
): CurrentModel {
  const changes = { own: stored.get(organizationId) ?? [], defaults: stored.get(null) ?? [] }
  return {
    model: modelInForce(changes, at).change?.model ?? standardModel,
    until: scheduledModel(changes, at)?.since ?? Infinity,
  }
}

function warnOfOutdatedModels(logger: Logger, newest: StoredChange[]): void {
  const models = newest.filter(({ model }) => model.version !== standardModel.version)
  if (models.length === 0) return
  const ids = models.map(({ model_id }) => model_id)
  logger.warn(
    { models: ids, standard: modelId(standardModel) },
    'scoring models are based on the standard model of another release; keeping them unchanged',
  )
}
