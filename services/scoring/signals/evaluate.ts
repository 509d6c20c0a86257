import type { SessionAgent, SessionAttestation } from '../../../schemas/events.ts'
import { type ModelSignal, type ScoringModel, standardModel } from '../model/model.ts'
import { type Score, scoreOf } from '../model/score.ts'
import { type AnswerFacts, type AnswersInput, noAnswers, proofOf } from '../session/answers.ts'
import { countedAt, type Facts, type FactsInput, readFacts } from '../session/facts.ts'
import type { SessionState } from '../session/state.ts'
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
  const fires = (signal: Signal) => (signal.looksBack ? signal.fires(facts) : before.has(signal.slug))
  return scored(facts, signalCatalogue.filter(fires), own.model)
}

interface Recorded extends Pick<Facts, 'repeats'> {
  /** Null where nobody looked for it. */
  agent: SessionAgent | null
  attestation: SessionAttestation | null
  /** The signals that fired. */
  fired: ReadonlySet<string>
}

/**
 * By the session's own observations and what a decision of it recorded of others. Signals that look at what no event has
 * fire as they did, whatever their rules are now.
 */
export function evaluateAsRecorded(
  { state, network, allowsMinimal }: Pick<FactsInput, 'state' | 'network' | 'allowsMinimal'>,
  model: ScoringModel,
  { fired, repeats, agent: identity, attestation }: Recorded,
): Evaluation {
  const judge = ({ snapshot, document }: AnswersInput): AnswerFacts => ({
    ...{ ...noAnswers, proof: proofOf(snapshot, document), engine: engineAsRecorded(state, fired) },
  })
  const facts = readFacts({ state, network, allowsMinimal, repeats, judge, identity, attestation })
  const fires = (signal: Signal) => (signal.unrecorded ? fired.has(signal.slug) : signal.fires(facts))
  return scored(facts, signalCatalogue.filter(fires), model)
}

// Signals about the session itself look at it, too. A page whose engine did not answer as the claimed one has a signal that
// says so, and any other client has one where its headers name another browser.
function engineAsRecorded({ platform }: SessionState, fired: Recorded['fired']): AnswerFacts['engine'] {
  if (fired.has('engine_contradicted')) return 'otherwise'
  const isUnproven = fired.has(platform === 'web' ? 'engine_unproven' : 'user_agent_header_mismatch')
  return isUnproven ? 'unknown' : 'as_claimed'
}

function scored(facts: Facts, signals: Signal[], model: ScoringModel): Evaluation {
  const fired = judgedBy(model, signals)
  const score = scoreOf(model, {
    signals: fired.map(({ slug }) => slug),
    hasSnapshot: facts.snapshot !== null,
  })
  return { model, facts, fired, score }
}
