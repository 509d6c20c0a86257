import { type ModelSignal, type ScoringModel, standardModel } from '../model/model.ts'
import { type Score, scoreOf } from '../model/score.ts'
import { type Facts, type FactsInput, readFacts, withVisitorCount } from '../session/facts.ts'
import { type Signal, signalCatalogue } from './catalogue.ts'

/** A signal that fired, with its weight in the model. */
export type FiredSignal = Signal & ModelSignal

export function applyModel(model: ScoringModel, signals: readonly Signal[]): FiredSignal[] {
  return signals.flatMap((signal) => {
    const weight = model.signals[signal.slug]
    return weight ? [{ ...signal, ...weight }] : []
  })
}

export interface Evaluation {
  model: ScoringModel
  facts: Facts
  fired: FiredSignal[]
  score: Score
}

/** Evaluates a session. Signals that depend on other sessions fire only if `input` has the counts. */
export function evaluate(input: FactsInput, model: ScoringModel = standardModel): Evaluation {
  const facts = readFacts(input)
  return evaluationOf(
    facts,
    signalCatalogue.filter((signal) => signal.fires(facts)),
    model,
  )
}

/** Adds the counts of other sessions, and re-evaluates only the signals that depend on these. */
export function withHistory(
  evaluation: Evaluation,
  history: Pick<Facts, 'visitorSessions' | 'repeats' | 'near'> & {
    hasCopiedId?: boolean | undefined
  },
): Evaluation {
  const network = withVisitorCount(evaluation.facts.network, history.repeats)
  const hasCopiedId = evaluation.facts.hasCopiedId || history.hasCopiedId === true
  const facts = { ...evaluation.facts, ...history, network, hasCopiedId }
  const previous = new Set(evaluation.fired.map(({ slug }) => slug))
  const fires = (signal: Signal) =>
    signal.usesHistory ? signal.fires(facts) : previous.has(signal.slug)
  const signals = signalCatalogue.filter(fires)
  const isSame = signals.length === previous.size && signals.every(({ slug }) => previous.has(slug))
  return isSame ? { ...evaluation, facts } : evaluationOf(facts, signals, evaluation.model)
}

function evaluationOf(facts: Facts, signals: Signal[], model: ScoringModel): Evaluation {
  const fired = applyModel(model, signals)
  const score = scoreOf(model, {
    signals: fired.map(({ slug }) => slug),
    hasSnapshot: facts.snapshot !== null,
  })
  return { model, facts, fired, score }
}
