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
  /** This month's key for visitor and network digests. Without it, nothing is learned from the session. */
  countingKey?: KeyObject | null | undefined
}

/**
 * Returns the answers that the deployment may learn from. Null unless they are keyed to the document, come from a real
 * browser, and the session has a visitor and natural input: anybody can send sessions that only load a page.
 */
export function givenAnswersOf({
  state,
  evaluation,
  visitor,
  countingKey,
}: AnsweringSession): GivenAnswers | null {
  const { facts, fired } = evaluation
  const { snapshot, document, answers, userAgent, agent } = facts
  if (!snapshot || !document || answers.proof !== 'keyed' || facts.platform !== 'web') return null
  if (answers.judgedBy === 'simulated') return null
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
      answers.questionAnswers.map(({ id, answer }) => [String(id), answerDigest(answer)]),
    ),
    handshake: handshake && canTeachHandshake(doubts, answers) ? classDigest(handshake) : null,
    ...digests,
    is_consistent: doubts.every(
      (slug) => slug === 'engine_unproven' && answers.judgedBy === 'recorded',
    ),
  }
}

// TLS-intercepting proxies are learned from people whose only risk signal is the proxy's handshake. Their engine must
// be proven, because programs have the same handshake and could claim any engine.
function canTeachHandshake(doubts: readonly string[], { engine }: Facts['answers']): boolean {
  if (doubts.length === 0) return true
  return doubts.every((slug) => slug === 'browser_with_tool_handshake') && engine === 'as_claimed'
}
