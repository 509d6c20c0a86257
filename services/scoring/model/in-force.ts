import { type ScoringModel, standardModel } from './model.ts'

/** The model in force for an organization. */
export interface CurrentModel {
  model: ScoringModel
  /** Time of the next known change, epoch milliseconds. */
  until: number
}

/** Returns the model of the organization with this id. */
export type ModelOf = (organizationId: string) => CurrentModel

export const alwaysStandardModel: ModelOf = () => ({ model: standardModel, until: Infinity })

export interface ModelChange {
  /** null = the organization uses the default model again. */
  model_id: string | null
  effective_at: number
}

/** Changes in the order of the log. */
export interface ModelChanges<C extends ModelChange = ModelChange> {
  /** Changes of the organization's own model. */
  own: readonly C[]
  /** Changes of the default model, for organizations without a model of their own. */
  defaults: readonly C[]
}

export interface ModelInForce<C extends ModelChange = ModelChange> {
  /** undefined = the standard model, because there was no change. */
  change: C | undefined
  /** null = always. */
  since: number | null
}

/** Returns the last change on the log that is in effect, so a later change can replace a scheduled one. */
export function changeInEffect<C extends ModelChange>(
  changes: readonly C[],
  at: number,
): C | undefined {
  return changes.findLast(({ effective_at }) => effective_at <= at)
}

/** Returns the organization's own model, or the default model if it has none. */
export function modelInForce<C extends ModelChange>(
  { own, defaults }: ModelChanges<C>,
  at: number,
): ModelInForce<C> {
  const ownChange = changeInEffect(own, at)
  if (ownChange && ownChange.model_id !== null)
    return { change: ownChange, since: ownChange.effective_at }
  const change = changeInEffect(defaults, at)
  const times = [ownChange?.effective_at, change?.effective_at].filter((time) => time !== undefined)
  return { change, since: times.length > 0 ? Math.max(...times) : null }
}

/** Returns the next scheduled model, or undefined if no change is scheduled. */
export function scheduledModel<C extends ModelChange>(
  changes: ModelChanges<C>,
  at: number,
): (ModelInForce<C> & { since: number }) | undefined {
  const current = modelInForce(changes, at).change
  const times = [...changes.own, ...changes.defaults].map(({ effective_at }) => effective_at)
  const later = times.filter((time) => time > at).toSorted((a, b) => a - b)
  const since = later.find((time) => modelInForce(changes, time).change !== current)
  return since === undefined ? undefined : { change: modelInForce(changes, since).change, since }
}
