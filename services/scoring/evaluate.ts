import { type Facts, type FactsInput, readFacts } from './facts.ts'
import { type Score, score } from './score.ts'
import { fire } from './signals/catalogue.ts'
import type { Signal } from './signals/signal.ts'

/** A session's evidence weighed: what fired and what follows from it. */
export interface Evaluation {
  facts: Facts
  fired: Signal[]
  score: Score
}

export function evaluate(input: FactsInput): Evaluation {
  const facts = readFacts(input)
  const fired = fire(facts)
  return { facts, fired, score: score(fired, facts) }
}
