import { createHmac, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import {
  type EngineVersion,
  engineName,
  engineVersionOf,
  questionsOf,
  recordedAnswer,
} from '../../infra/challenges/challenges.ts'
import {
  type AnswerKey,
  type Answers,
  answerKeyText,
  answerText,
  type EngineQuestion,
} from '../../infra/wire/collect/protocol.ts'
import type { Environment } from '../../schemas/events.ts'
import type { Snapshot } from '../../schemas/observations.ts'
import type { Agent } from './agent.ts'
import type { DocumentState } from './session-state.ts'

interface Asked {
  environment: Environment
  // An engine and its version, or machines that draw alike.
  class: string
  asked: string
}

/** What honest sessions answered, learned from the log. Undefined where too few did. */
export type LearnedAnswers = (of: Asked) => Pick<ReadonlySet<string>, 'has'> | undefined

export const nothingLearned: LearnedAnswers = () => undefined

/** How a snapshot answers its document, and whether its engine and graphics answer as the claimed ones do. */
export interface AnswerFacts {
  /** `echoed`: as SDKs before 0.2 did, which give the document's texts back in clear. */
  given: 'keyed' | 'echoed' | 'wrong' | 'none'
  engine: 'as_claimed' | 'otherwise' | 'unanswered' | 'unknown'
  canvas: 'as_others' | 'otherwise' | 'unknown'
}

export const noAnswers: AnswerFacts = { given: 'none', engine: 'unknown', canvas: 'unknown' }

interface AnswersInput {
  snapshot: Snapshot
  document: DocumentState
  agent: Agent
  userAgent: string
  environment: Environment
  learned: LearnedAnswers
}

export function judgeAnswers(input: AnswersInput): AnswerFacts {
  return { given: givenBy(input.snapshot, input.document), engine: engineOf(input), canvas: canvasOf(input) }
}

export function verifiesAnswers(key: AnswerKey, answers: Answers, mac: string): boolean {
  const own = createHmac('sha256', answerKeyText(key)).update(answerText(answers)).digest('base64url')
  return own.length === mac.length && timingSafeEqual(Buffer.from(own), Buffer.from(mac.padEnd(own.length)))
}

function givenBy({ proofs }: Snapshot, document: DocumentState): AnswerFacts['given'] {
  const { challenge, timing_nonce: timingNonce } = document
  // A document whose opening was forgotten has nothing to compare with.
  if (challenge === '') return 'keyed'
  if (proofs.answer_mac !== null) {
    const answers = { canvas: proofs.canvas_challenge_hash, engine: proofs.engine_answers }
    return verifiesAnswers({ challenge, timingNonce }, answers, proofs.answer_mac) ? 'keyed' : 'wrong'
  }
  if (proofs.challenge === null || proofs.timing_nonce === null) return 'none'
  return proofs.challenge === challenge && proofs.timing_nonce === timingNonce ? 'echoed' : 'wrong'
}

// Fewer comparable answers decide nothing.
const enough = 4

function engineOf({ snapshot, document, userAgent, ...known }: AnswersInput): AnswerFacts['engine'] {
  const answers = new Map(snapshot.proofs.engine_answers.map(({ id, answer }) => [id, answer]))
  const asked = document.challenge === '' ? [] : askedOf(document.challenge)
  if (asked.some(({ id }) => !answers.has(id))) return 'unanswered'
  const version = engineVersionOf(userAgent)
  if (!version) return 'unknown'
  let [judged, right] = [0, 0]
  for (const { id } of asked) {
    const isRight = isExpected(answers.get(id) ?? '', { version, question: id, ...known })
    if (isRight === undefined) continue
    judged += 1
    if (isRight) right += 1
  }
  if (judged < enough) return 'unknown'
  const share = right / judged
  return share >= 0.75 ? 'as_claimed' : share < 0.5 ? 'otherwise' : 'unknown'
}

// Each batch of a document asks for its questions again.
const questions = new LRUCache<string, EngineQuestion[]>({ max: 2000 })

export function askedOf(challenge: string): EngineQuestion[] {
  const known = questions.get(challenge) ?? questionsOf(challenge)
  questions.set(challenge, known)
  return known
}

interface Expectation extends Pick<AnswersInput, 'environment' | 'learned'> {
  version: EngineVersion
  question: number
}

// What was learned goes before what was recorded. Undefined where neither is there.
function isExpected(
  answer: string,
  { version, question, environment, learned }: Expectation,
): boolean | undefined {
  const seen = learned({ environment, class: engineName(version), asked: String(question) })
  if (seen) return seen.has(answer)
  const recorded = recordedAnswer(version, question)
  return recorded === undefined ? undefined : answer === recorded
}

function canvasOf({ snapshot, document, agent, environment, learned }: AnswersInput): AnswerFacts['canvas'] {
  const answer = snapshot.proofs.canvas_challenge_hash
  const canvasClass = canvasClassOf(snapshot, agent)
  const isNoise = snapshot.canvas.noise_detected !== false
  if (answer === null || canvasClass === null || isNoise || !document.canvas_seed) return 'unknown'
  const others = learned({ environment, class: canvasClass, asked: `canvas ${document.canvas_seed}` })
  if (!others) return 'unknown'
  return others.has(String(answer)) ? 'as_others' : 'otherwise'
}

/** Machines that draw alike: renderer, system, browser and its version. Null where one of them is not told. */
export function canvasClassOf({ webgl }: Snapshot, { system, browser, major }: Agent): string | null {
  const parts = [webgl.renderer, system, browser, major]
  return parts.some((part) => part === null) ? null : parts.join(' | ')
}
