import { type ScoringModel, standardModel } from './model.ts'

/** The model of an organization's decisions, and the first moment at which it may be another one. */
export interface CurrentModel {
  model: ScoringModel
  until: number
}

/** By the organization's id. */
export type ModelOf = (organizationId: string) => CurrentModel

export const alwaysStandard: ModelOf = () => ({ model: standardModel, until: Infinity })

/** A change of model; `model_id` null: the organization has none of its own any more. */
export interface ModelChange {
  model_id: string | null
  effective_at: number
}

/** Both in the order of the log. */
export interface ModelChanges<C extends ModelChange = ModelChange> {
  /** Of the organization. */
  own: readonly C[]
  everybody: readonly C[]
}

export interface InForce<C extends ModelChange = ModelChange> {
  /** undefined = the standard model, which nobody has changed. */
  change: C | undefined
  /** null = always. */
  since: number | null
}

/** Of changes in effect the newest counts, so that a later one can take the place of one that is still to come. */
export function inEffect<C extends ModelChange>(changes: readonly C[], at: number): C | undefined {
  return changes.findLast(({ effective_at }) => effective_at <= at)
}

/** The organization's own model, else that of everybody. */
export function modelInForce<C extends ModelChange>(
  { own, everybody }: ModelChanges<C>,
  at: number,
): InForce<C> {
  const mine = inEffect(own, at)
  if (mine && mine.model_id !== null) return { change: mine, since: mine.effective_at }
  const theirs = inEffect(everybody, at)
  const moments = [mine, theirs].flatMap((change) => change?.effective_at ?? [])
  return { change: theirs, since: moments.length > 0 ? Math.max(...moments) : null }
}

/** What is in force next by the changes known so far; undefined = nothing else. */
export function modelToCome<C extends ModelChange>(
  changes: ModelChanges<C>,
  at: number,
): (InForce<C> & { since: number }) | undefined {
  const now = modelInForce(changes, at).change
  const moments = [...changes.own, ...changes.everybody].map(({ effective_at }) => effective_at)
  const later = moments.filter((moment) => moment > at).toSorted((one, other) => one - other)
  const since = later.find((moment) => modelInForce(changes, moment).change !== now)
  return since === undefined ? undefined : { change: modelInForce(changes, since).change, since }
}
