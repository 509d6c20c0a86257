import type { KeyObject } from 'node:crypto'
import { engineName, engineVersionOf } from '../../infra/challenges/challenges.ts'
import { answerDigest, classDigest, visitorDigests } from '../../projections/answers/digests.ts'
import type { GivenAnswers, VisitorLink } from '../../schemas/events.ts'
import { canvasClassOf } from './session/answers.ts'
import type { Facts } from './session/facts.ts'
import { handshakeClassOf } from './session/handshake.ts'
import type { SessionState } from './session/state.ts'
import { hasNaturalInput } from './signals/behavior.ts'
import type { Evaluation } from './signals/evaluate.ts'

export interface AnsweringSession {
  state: Pick<SessionState, 'organization_id'>
  evaluation: Evaluation
  visitor: VisitorLink | null
  /** Key of the month for visitor and network digests. Without it the session's answers are not learned. */
  countingKey?: KeyObject | null | undefined
}

/**
 * Returns the answers that other sessions learn from. Null if they are not keyed to the document or come from a
 * simulated browser, without a visitor, or without natural input, because anybody can send sessions that only load a
 * page.
 */
export function answersOf({
  state,
  evaluation,
  visitor,
  countingKey,
}: AnsweringSession): GivenAnswers | null {
  const { facts, fired } = evaluation
  const { snapshot, document, answers, userAgent, agent } = facts
  if (!snapshot || !document || answers.proof !== 'keyed' || facts.platform !== 'web') return null
  if (answers.engineBy === 'simulated') return null
  if (!visitor || !countingKey || !hasNaturalInput(facts)) return null
  const { organization_id } = state
  const { ip_address: ipAddress } = facts.network
  const digests = visitorDigests(countingKey, { organization_id, visitorId: visitor.id, ipAddress })
  if (!digests) return null
  const version = engineVersionOf(userAgent)
  const canvasClass = canvasClassOf(snapshot, agent)
  const { canvas_challenge_hash: canvas } = snapshot.proofs
  const handshake = handshakeClassOf(document.ja4)
  const doubts = fired.flatMap(({ role, strength, slug }) =>
    role === 'risk' && (strength !== 'weak' || slug === 'mass_run') ? slug : [],
  )
  return {
    engine: version && classDigest(engineName(version)),
    engine_family: version?.family ?? null,
    canvas_class: canvasClass === null ? null : classDigest(canvasClass),
    canvas_seed: document.canvas_seed ?? null,
    canvas_answer: canvas === null ? null : answerDigest(String(canvas)),
    engine_answers: Object.fromEntries(
      answers.toQuestions.map(({ id, answer }) => [String(id), answerDigest(answer)]),
    ),
    handshake: handshake && teachesHandshake(doubts, answers) ? classDigest(handshake) : null,
    ...digests,
    is_consistent: doubts.every(
      (slug) => slug === 'engine_unproven' && answers.engineBy === 'recorded',
    ),
  }
}

// A TLS-intercepting proxy is learned from people whose only risk signal is its handshake. They must prove their
// engine, because programs have the same handshake and could claim any engine.
function teachesHandshake(doubts: readonly string[], { engine }: Facts['answers']): boolean {
  if (doubts.length === 0) return true
  return doubts.every((slug) => slug === 'browser_with_tool_handshake') && engine === 'as_claimed'
}
