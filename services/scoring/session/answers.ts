import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { bankNumbersOf } from '../../../infra/challenges/bank.ts'
import {
  answersAsAnother,
  type EngineVersion,
  engineName,
  engineVersionOf,
  isRecorded,
  questionsOf,
  recordedAnswer,
} from '../../../infra/challenges/challenges.ts'
import { isSameText } from '../../../infra/crypto/same-text.ts'
import {
  type AnswerKey,
  type Answers,
  answerKeyText,
  answerText,
  type EngineAnswer,
  type EngineQuestion,
} from '../../../infra/wire/collect/protocol.ts'
import { provesSimulation, type SimulationKey } from '../../../infra/wire/collect/simulation.ts'
import type { Environment } from '../../../schemas/events.ts'
import type { Snapshot } from '../../../schemas/observations.ts'
import type { Agent } from './agent.ts'
import type { DocumentState } from './state.ts'

/** Whose answers are asked for. */
export interface AnswerClass {
  environment: Environment
  organizationId: string
  /** An engine and its version, an engine for the deployment's own questions, or machines that draw alike. */
  class: string
}

export interface AnswerQuery extends AnswerClass {
  asked: string
}

/** What honest sessions and the operator's browsers answered, learned from the log. */
export interface LearnedAnswers {
  /** undefined where too few did. */
  right(of: AnswerQuery): Pick<ReadonlySet<string>, 'has'> | undefined
  /** The ids that a number of the bank has, by the deployment's keys. */
  ownIds(number: number): number[]
  /** Whether an engine's answers to most of the deployment's own questions that are frequent are known. */
  knowsBank(of: AnswerClass): boolean
}

export const nothingLearned: LearnedAnswers = {
  right: () => undefined,
  ownIds: () => [],
  knowsBank: () => false,
}

/** How a snapshot answers its document, and whether its engine and graphics answer as the claimed ones do. */
export interface AnswerFacts {
  /** `echoed`: as SDKs before 0.2 did, which give the document's texts back in clear. */
  given: 'keyed' | 'echoed' | 'wrong' | 'none'
  engine: EngineVerdict
  /**
   * What that was compared with: what was recorded for the repository, or what the deployment learned. `simulated`: with
   * nothing, since a script beside `tidegate dev` proved itself.
   */
  engineBy: 'recorded' | 'learned' | 'simulated'
  /** What was answered to the questions that the document was asked, the deployment's own included. */
  toQuestions: readonly EngineAnswer[]
  canvas: 'as_others' | 'otherwise' | 'unknown'
}

/** `unrecorded`: nobody knows what the engine answers, as with Apple's, and it does not answer as another one. */
export type EngineVerdict = 'as_claimed' | 'otherwise' | 'unanswered' | 'unrecorded' | 'unknown'

export const noAnswers: AnswerFacts = {
  ...{ given: 'none', engine: 'unknown', engineBy: 'recorded', canvas: 'unknown', toQuestions: [] },
}

interface AnswersInput {
  snapshot: Snapshot
  document: DocumentState
  agent: Agent
  userAgent: string
  environment: Environment
  organizationId: string
  sessionId: string
  learned: LearnedAnswers
  simulationKey: SimulationKey | undefined
}

export function judgeAnswers(input: AnswersInput): AnswerFacts {
  const given = proofOf(input.snapshot, input.document)
  if (isSimulated(input)) return { ...noAnswers, given, engine: 'as_claimed', engineBy: 'simulated' }
  const toBank = answersToBank(input)
  const toQuestions = [...answersToRecorded(input), ...toBank.filter((one) => one !== undefined)]
  return {
    ...{ given, canvas: canvasOf(input), toQuestions },
    ...engineOf(input, toBank),
  }
}

function isSimulated({ simulationKey, sessionId, snapshot, document }: AnswersInput): boolean {
  const { challenge } = document
  if (!simulationKey || challenge === '') return false
  return provesSimulation(simulationKey, { sessionId, challenge }, snapshot.proofs.engine_answers)
}

export function verifiesAnswers(key: AnswerKey, answers: Answers, mac: string): boolean {
  const own = createHmac('sha256', answerKeyText(key)).update(answerText(answers)).digest('base64url')
  return isSameText(own, mac)
}

function proofOf({ proofs }: Snapshot, document: DocumentState): AnswerFacts['given'] {
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

/**
 * The repository's questions say whose engine it is as long as the deployment has learned too little of its own: their
 * answers are public. From then on they only contradict.
 */
function engineOf(
  input: AnswersInput,
  toBank: (EngineAnswer | undefined)[],
): Pick<AnswerFacts, 'engine' | 'engineBy'> {
  const recorded = byRecorded(input)
  const decides = recorded === 'otherwise' || recorded === 'unanswered'
  const learned = decides ? undefined : byBank(input, toBank)
  return learned ? { engine: learned, engineBy: 'learned' } : { engine: recorded, engineBy: 'recorded' }
}

function byRecorded({ snapshot, document, userAgent, ...known }: AnswersInput): EngineVerdict {
  const answers = new Map(snapshot.proofs.engine_answers.map(({ id, answer }) => [id, answer]))
  const asked = document.challenge === '' ? [] : askedOf(document.challenge)
  if (asked.some(({ id }) => !answers.has(id))) return 'unanswered'
  const version = engineVersionOf(userAgent)
  if (!version) return 'unknown'
  const isRight = asked.map(({ id }) =>
    isExpected(answers.get(id) ?? '', { version, question: id, ...known }),
  )
  const judged = verdictOf(isRight)
  return judged === 'unknown' && !isRecorded(version) && asked.length > 0
    ? unrecorded(answersToRecorded({ snapshot, document }))
    : judged
}

const unrecorded = (answers: EngineAnswer[]): EngineVerdict =>
  answersAsAnother(answers) ? 'otherwise' : 'unrecorded'

function answersToRecorded({
  snapshot,
  document,
}: Pick<AnswersInput, 'snapshot' | 'document'>): EngineAnswer[] {
  const asked = new Set(document.challenge === '' ? [] : askedOf(document.challenge).map(({ id }) => id))
  return snapshot.proofs.engine_answers.filter(({ id }) => asked.has(id))
}

// What an SDK answers to a kind of question that it does not know.
const unknownKind = 'object null'

// For each question of the bank that the document was asked. Ids of other keys are not ours, whatever they answer.
function answersToBank({ snapshot, document, learned }: AnswersInput): (EngineAnswer | undefined)[] {
  if (document.challenge === '') return []
  const answers = new Map(
    snapshot.proofs.engine_answers.filter(({ answer }) => answer !== unknownKind).map((one) => [one.id, one]),
  )
  return bankNumbersOf(document.challenge, document.opened_at).map((number) =>
    learned
      .ownIds(number)
      .map((id) => answers.get(id))
      .find((one) => one !== undefined),
  )
}

// undefined while too little is learned of the engine.
function byBank(
  { document, userAgent, learned, environment, organizationId }: AnswersInput,
  toBank: (EngineAnswer | undefined)[],
): EngineVerdict | undefined {
  const version = engineVersionOf(userAgent)
  const engine = version && { environment, organizationId, class: version.family }
  if (!engine || document.challenge === '' || !learned.knowsBank(engine)) return undefined
  if (toBank.some((one) => one === undefined)) return 'unanswered'
  return verdictOf(
    toBank.map((one) => one && learned.right({ ...engine, asked: String(one.id) })?.has(one.answer)),
  )
}

// Fewer comparable answers decide nothing.
const enough = 3

/** Of answers that are right, wrong or, where it is undefined, not known. */
function verdictOf(answers: (boolean | undefined)[]): EngineVerdict {
  const judged = answers.filter((isRight) => isRight !== undefined)
  if (judged.length < enough) return 'unknown'
  const share = judged.filter(Boolean).length / judged.length
  return share >= 0.75 ? 'as_claimed' : share < 0.5 ? 'otherwise' : 'unknown'
}

// Each batch of a document asks for its questions again.
const questions = new LRUCache<string, EngineQuestion[]>({ max: 2000 })

export function askedOf(challenge: string): EngineQuestion[] {
  const known = questions.get(challenge) ?? questionsOf(challenge)
  questions.set(challenge, known)
  return known
}

interface Expectation extends Pick<AnswersInput, 'environment' | 'organizationId' | 'learned'> {
  version: EngineVersion
  question: number
}

// What was learned goes before what was recorded. Undefined where neither is there.
function isExpected(answer: string, { version, question, learned, ...of }: Expectation): boolean | undefined {
  const seen = learned.right({ ...of, class: engineName(version), asked: String(question) })
  if (seen) return seen.has(answer)
  const recorded = recordedAnswer(version, question)
  return recorded === undefined ? undefined : answer === recorded
}

function canvasOf({ snapshot, document, agent, learned, ...of }: AnswersInput): AnswerFacts['canvas'] {
  const answer = snapshot.proofs.canvas_challenge_hash
  const canvasClass = canvasClassOf(snapshot, agent)
  const isNoise = snapshot.canvas.noise_detected !== false
  if (answer === null || canvasClass === null || isNoise || !document.canvas_seed) return 'unknown'
  const others = learned.right({ ...of, class: canvasClass, asked: `canvas ${document.canvas_seed}` })
  if (!others) return 'unknown'
  return others.has(String(answer)) ? 'as_others' : 'otherwise'
}

/** Machines that draw alike: renderer, system, browser and its version. Null where one of them is not told. */
export function canvasClassOf({ webgl }: Snapshot, { system, browser, major }: Agent): string | null {
  const parts = [webgl.renderer, system, browser, major]
  return parts.some((part) => part === null) ? null : parts.join(' | ')
}
