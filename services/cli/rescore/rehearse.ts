import type { ScoringModel } from '../../scoring/model/model.ts'
import {
  type ComparedDecisions,
  type FactRow,
  type FindModel,
  increment,
  scorer,
  startComparison,
} from './compare.ts'
import type { ObservationReport } from './observed.ts'

export interface Rehearsal extends ComparedDecisions {
  /** Left out, because the organization's decisions have ended, and with them what fired. */
  ended: number
  /** Sessions with signals that the model does not know, and how many have each. */
  unknown_signals: { sessions: number; signals: Record<string, number> }
  /** null = a model was tried on the signals that fired. */
  observations: ObservationReport | null
}

export interface Models {
  tried: ScoringModel
  modelOf: FindModel
}

/** What a model would have decided of the signals that fired. */
export function startRehearsal({ tried, modelOf }: Models) {
  const scoreTried = scorer(tried)
  const comparison = startComparison(modelOf)
  const unknown = { sessions: 0, signals: new Map<string, number>() }
  let ended = 0

  function add({ signals: slugs, ...row }: FactRow): void {
    if (slugs === null) {
      ended++
      return
    }
    const { unknownSignals, ...after } = scoreTried(slugs, row.has_snapshot === true)
    comparison.add({ ...row, signals: slugs }, after)
    if (unknownSignals.length > 0) unknown.sessions++
    for (const signal of unknownSignals) increment(unknown.signals, signal)
  }

  const result = (): Rehearsal => ({
    ...{ ...comparison.result(), ended, observations: null },
    unknown_signals: { sessions: unknown.sessions, signals: Object.fromEntries(unknown.signals) },
  })
  return { add, result }
}
