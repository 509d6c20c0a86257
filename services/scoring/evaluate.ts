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
  return weigh(readFacts(input))
}

/** The same evidence once the visitor is known, which may add context and never changes the verdict. */
export function withVisitor({ facts }: Evaluation, visitorSessions: number): Evaluation {
  return weigh({ ...facts, visitorSessions })
}

function weigh(facts: Facts): Evaluation {
  const fired = fire(facts)
  return { facts, fired, score: score(fired, facts) }
}
