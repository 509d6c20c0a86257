import { type ModelSignal, type ScoringModel, standardModel } from '../model/model.ts'
import { type Score, scoreOf } from '../model/score.ts'
import { countedAt, type Facts, type FactsInput, readFacts } from '../session/facts.ts'
import { type Signal, signalCatalogue } from './catalogue.ts'

/** A signal that fired, with what the model says of it. */
export type FiredSignal = Signal & ModelSignal

export function judgedBy(model: ScoringModel, signals: readonly Signal[]): FiredSignal[] {
  return signals.flatMap((signal) => {
    const judged = model.signals[signal.slug]
    return judged ? [{ ...signal, ...judged }] : []
  })
}

export interface Evaluation {
  model: ScoringModel
  facts: Facts
  fired: FiredSignal[]
  score: Score
}

/** By the session's own observations. Nothing is known of other sessions, unless `input` has it. */
export function evaluate(input: FactsInput, model: ScoringModel = standardModel): Evaluation {
  const facts = readFacts(input)
  return scored(
    facts,
    signalCatalogue.filter((signal) => signal.fires(facts)),
    model,
  )
}

/**
 * The same evidence, once it is known what other sessions have in common with this one. Only signals that look at
 * others are tried again, because there are some ten of them and each decision is evaluated so.
 */
export function withHistory(
  own: Evaluation,
  history: Pick<Facts, 'visitorSessions' | 'repeats' | 'near'> & { isCopied?: boolean | undefined },
): Evaluation {
  const network = countedAt(own.facts.network, history.repeats)
  const isCopied = own.facts.isCopied || history.isCopied === true
  const facts = { ...own.facts, ...history, network, isCopied }
  const before = new Set(own.fired.map(({ slug }) => slug))
  const fires = (signal: Signal) =>
    signal.looksBack ? signal.fires(facts) : before.has(signal.slug)
  const signals = signalCatalogue.filter(fires)
  const isSame = signals.length === before.size && signals.every(({ slug }) => before.has(slug))
  return isSame ? { ...own, facts } : scored(facts, signals, own.model)
}

function scored(facts: Facts, signals: Signal[], model: ScoringModel): Evaluation {
  const fired = judgedBy(model, signals)
  const score = scoreOf(model, {
    signals: fired.map(({ slug }) => slug),
    hasSnapshot: facts.snapshot !== null,
  })
  return { model, facts, fired, score }
}
