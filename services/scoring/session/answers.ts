import { createHmac } from 'node:crypto'
import { bankNumbersOf } from '../../../infra/challenges/bank.ts'
import {
  type EngineFamily,
  type EngineVersion,
  engineName,
  engineVersionOf,
  isRecorded,
  matchesAnotherEngine,
  questionsOf,
  recordedAnswer,
} from '../../../infra/challenges/challenges.ts'
import { countRepeatedTexts, isPlausible } from '../../../infra/challenges/plausible.ts'
import { constantTimeEqual } from '../../../infra/crypto/constant-time.ts'
import { memoize } from '../../../infra/lru.ts'
import {
  type AnswerKey,
  type Answers,
  answerKeyText,
  answerText,
  type EngineAnswer,
  type EngineQuestion,
} from '../../../infra/wire/collect/protocol.ts'
import { hasSimulationProof, type SimulationKey } from '../../../infra/wire/collect/simulation.ts'
import type {
  AnswerClass,
  LearnedAnswers,
  LearningProgress,
} from '../../../projections/answers/learned.ts'
import type { Environment } from '../../../schemas/events.ts'
import type { Snapshot } from '../../../schemas/observations.ts'
import type { Agent } from './agent.ts'
import type { DocumentState, SessionState } from './state.ts'

// Judges challenge-response answers. A snapshot must answer its document's challenge, keyed by it (`proof`). Each
// document also asks questions about the behavior of the JavaScript engine, and for a canvas drawing. The answers to
// the questions in this repository were recorded and are public, so they prove little. Bank questions are private to
// the deployment, which learns their answers from sessions. Once it has learned an engine, only bank answers confirm
// that engine, and recorded ones can only contradict it.

/** Results of checking a snapshot's answers. */
export interface AnswerFacts {
  /** `echoed`: the challenge itself was returned, as by SDKs before 0.2. */
  proof: 'keyed' | 'echoed' | 'wrong' | 'none'
  engine: EngineVerdict
  /** Source of the answers that `engine` was judged by. `simulated`: none, because `tidegate dev` trusts the script. */
  judgedBy: 'recorded' | 'learned' | 'simulated'
  /** Set if the answers are plausible but prove little, because the deployment has not learned the engine. */
  notLearned: (Pick<LearningProgress, 'visitors' | 'needed'> & { engine: EngineFamily }) | null
  /** Answers to the document's questions, including bank questions. */
  questionAnswers: readonly EngineAnswer[]
  canvas: 'matches_others' | 'differs' | 'unknown'
}

/**
 * `pending`: the answers to bank questions follow in the next body. `unrecorded`: the claimed engine's answers are not
 * known, as for Apple's, and those given match no other engine.
 */
type EngineVerdict =
  | 'as_claimed'
  | 'contradicted'
  | 'pending'
  | 'unanswered'
  | 'unrecorded'
  | 'unknown'

export const noAnswers: AnswerFacts = {
  proof: 'none',
  engine: 'unknown',
  judgedBy: 'recorded',
  canvas: 'unknown',
  notLearned: null,
  questionAnswers: [],
}

export interface AnswersInput {
  snapshot: Snapshot
  document: DocumentState
  agent: Agent
  userAgent: string
  environment: Environment
  organizationId: string
  sessionId: string
  learned: LearnedAnswers
  simulationKey: SimulationKey | undefined
  bankAnswers: BankAnswers
}

/** Answers to a document's bank questions, in order; undefined for a missing one. */
type BankAnswers = readonly (EngineAnswer | undefined)[] | 'pending'

export function judgeAnswers(input: AnswersInput): AnswerFacts {
  const proof = proofOf(input.snapshot, input.document)
  if (isSimulated(input))
    return { ...noAnswers, proof, engine: 'as_claimed', judgedBy: 'simulated' }
  const questionAnswers = [...recordedQuestionAnswers(input), ...receivedAnswers(input.bankAnswers)]
  return {
    proof,
    canvas: judgeCanvas(input),
    questionAnswers,
    ...judgeEngine(input),
  }
}

function isSimulated({ simulationKey, sessionId, snapshot, document }: AnswersInput): boolean {
  const { challenge } = document
  if (!simulationKey || challenge === '') return false
  return hasSimulationProof(simulationKey, { sessionId, challenge }, snapshot.proofs.engine_answers)
}

export function isValidAnswerMac(key: AnswerKey, answers: Answers, mac: string): boolean {
  const expected = createHmac('sha256', answerKeyText(key))
    .update(answerText(answers))
    .digest('base64url')
  return constantTimeEqual(expected, mac)
}

function proofOf({ proofs }: Snapshot, document: DocumentState): AnswerFacts['proof'] {
  const { challenge, timing_nonce: timingNonce } = document
  // Without the document's opening there is nothing to compare with.
  if (challenge === '') return 'keyed'
  if (proofs.answer_mac !== null) {
    const answers = { canvas: proofs.canvas_challenge_hash, engine: proofs.engine_answers }
    return isValidAnswerMac({ challenge, timingNonce }, answers, proofs.answer_mac)
      ? 'keyed'
      : 'wrong'
  }
  if (proofs.challenge === null || proofs.timing_nonce === null) return 'none'
  return proofs.challenge === challenge && proofs.timing_nonce === timingNonce ? 'echoed' : 'wrong'
}

/** Compares the answers with those of the claimed engine: recorded ones first, then bank answers if it is learned. */
function judgeEngine(input: AnswersInput): Pick<AnswerFacts, 'engine' | 'judgedBy' | 'notLearned'> {
  const { document, userAgent, learned, environment, organizationId, bankAnswers } = input
  const version = engineVersionOf(userAgent)
  const recorded = judgeByRecorded(input, version)
  const result = { engine: recorded, judgedBy: 'recorded', notLearned: null } as const
  if (recorded === 'contradicted' || recorded === 'unanswered') return result
  if (!version || document.challenge === '') return result
  const answerClass = { environment, organizationId, class: version.family }
  const { isLearned, visitors, needed } = learned.progress(answerClass)
  if (isLearned) {
    const engine = judgeByBank(bankAnswers, { learned, answerClass })
    return { engine, judgedBy: 'learned', notLearned: null }
  }
  const engine = judgeByPlausibility(input) ?? recorded
  const isPossible = engine === 'as_claimed' || engine === 'unrecorded'
  const notLearned = isPossible ? { engine: version.family, visitors, needed } : null
  return { engine, judgedBy: 'recorded', notLearned }
}

function judgeByRecorded(input: AnswersInput, version: EngineVersion | null): EngineVerdict {
  const { snapshot, document, userAgent: _, ...scope } = input
  const answers = new Map(snapshot.proofs.engine_answers.map(({ id, answer }) => [id, answer]))
  const questions = recordedQuestions(document)
  if (questions.some(({ id }) => !answers.has(id))) return 'unanswered'
  if (!version) return 'unknown'
  const matches = questions.map(({ id }) =>
    isExpected(answers.get(id) ?? '', { version, question: id, ...scope }),
  )
  const judged = verdictOf(matches)
  if (judged !== 'unknown' || isRecorded(version) || questions.length === 0) return judged
  return matchesAnotherEngine(recordedQuestionAnswers(input)) ? 'contradicted' : 'unrecorded'
}

// A new engine version may throw errors that were not recorded yet.
const maxImplausible = 0.25

/** Judges answers when the right ones are not known. Returns undefined if an engine could have given them. */
function judgeByPlausibility(input: AnswersInput): 'contradicted' | 'unanswered' | undefined {
  const { document, learned, bankAnswers } = input
  const bank = bankNumbersOf(document.challenge, document.opened_at).flatMap((number) =>
    learned.bankQuestions(number),
  )
  const isMissing = bankAnswers !== 'pending' && bankAnswers.includes(undefined)
  if (bank.length > 0 && isMissing) return 'unanswered'
  const asked = [...recordedQuestions(document), ...bank]
  const questions = new Map(asked.map((question) => [question.id, question]))
  const given = [...recordedQuestionAnswers(input), ...receivedAnswers(bankAnswers)]
  const implausible = given.filter(({ id, answer }) => {
    const question = questions.get(id)
    return question !== undefined && !isPlausible(question, answer)
  })
  return implausible.length + countRepeatedTexts(given) > given.length * maxImplausible
    ? 'contradicted'
    : undefined
}

function recordedQuestionAnswers({
  snapshot,
  document,
}: Pick<AnswersInput, 'snapshot' | 'document'>): EngineAnswer[] {
  const ids = new Set(recordedQuestions(document).map(({ id }) => id))
  return snapshot.proofs.engine_answers.filter(({ id }) => ids.has(id))
}

// SDKs send this answer to a kind of question that they don't support.
const unsupportedAnswer = 'object null'

const receivedAnswers = (bankAnswers: BankAnswers): EngineAnswer[] =>
  bankAnswers === 'pending' ? [] : bankAnswers.filter((answer) => answer !== undefined)

/**
 * Returns the answers to the document's bank questions, which follow the snapshot. Until they arrive, the answers
 * to the session's previous document count.
 */
export function bankAnswersOf(
  { documents, late_answers: lateAnswers }: SessionState,
  { snapshot, document, learned }: Pick<AnswersInput, 'snapshot' | 'document' | 'learned'>,
): BankAnswers {
  if (document.challenge === '') return []
  const answers = new Map(
    [...snapshot.proofs.engine_answers, ...(lateAnswers?.answers ?? [])]
      .filter(({ answer }) => answer !== unsupportedAnswer)
      .map((answer) => [answer.id, answer]),
  )
  const answersIn = ({ challenge, opened_at }: DocumentState) =>
    bankNumbersOf(challenge, opened_at).map((number) =>
      learned
        .bankQuestions(number)
        .map(({ id }) => answers.get(id))
        .find((answer) => answer !== undefined),
    )
  const given = answersIn(document)
  if (document.is_answered || !given.includes(undefined)) return given
  const previous = documents.find(({ hash }) => hash === lateAnswers?.document)
  return previous ? answersIn(previous) : 'pending'
}

function judgeByBank(
  bankAnswers: BankAnswers,
  { learned, answerClass }: { learned: LearnedAnswers; answerClass: AnswerClass },
): EngineVerdict {
  if (bankAnswers === 'pending') return bankAnswers
  if (bankAnswers.includes(undefined)) return 'unanswered'
  return verdictOf(
    bankAnswers.map((given) => {
      if (!given) return undefined
      return learned.answersTo({ ...answerClass, question: String(given.id) })?.has(given.answer)
    }),
  )
}

const minJudged = 3

/** Returns the verdict. An answer is true if right, false if wrong, and undefined if it can't be judged. */
function verdictOf(answers: (boolean | undefined)[]): EngineVerdict {
  const judged = answers.filter((isRight) => isRight !== undefined)
  if (judged.length < minJudged) return 'unknown'
  const share = judged.filter(Boolean).length / judged.length
  return share >= 0.75 ? 'as_claimed' : share < 0.5 ? 'contradicted' : 'unknown'
}

// Cached because every batch of a document needs its questions.
const questionsOfChallenge = memoize(2000, questionsOf)

const recordedQuestions = ({ challenge }: DocumentState): EngineQuestion[] =>
  challenge === '' ? [] : questionsOfChallenge(challenge)

interface Expectation extends Pick<AnswersInput, 'environment' | 'organizationId' | 'learned'> {
  version: EngineVersion
  question: number
}

// Compares with learned answers, else with the recorded one. Returns undefined if there is neither.
function isExpected(
  answer: string,
  { version, question, learned, ...scope }: Expectation,
): boolean | undefined {
  const query = { ...scope, class: engineName(version), question: String(question) }
  const learnedAnswers = learned.answersTo(query)
  if (learnedAnswers) return learnedAnswers.has(answer)
  const recorded = recordedAnswer(version, question)
  return recorded === undefined ? undefined : answer === recorded
}

function judgeCanvas({
  snapshot,
  document,
  agent,
  learned,
  ...scope
}: AnswersInput): AnswerFacts['canvas'] {
  const answer = snapshot.proofs.canvas_challenge_hash
  const canvasClass = canvasClassOf(snapshot, agent)
  const isNoise = snapshot.canvas.noise_detected !== false
  if (answer === null || canvasClass === null || isNoise || !document.canvas_seed) return 'unknown'
  const question = `canvas ${document.canvas_seed}`
  const learnedAnswers = learned.answersTo({ ...scope, class: canvasClass, question })
  if (!learnedAnswers) return 'unknown'
  return learnedAnswers.has(String(answer)) ? 'matches_others' : 'differs'
}

/** Returns the class of machines that draw alike: renderer, system, browser and version. Null if one is unknown. */
export function canvasClassOf(
  { webgl }: Snapshot,
  { system, browser, major }: Agent,
): string | null {
  const parts = [webgl.renderer, system, browser, major]
  return parts.some((part) => part === null) ? null : parts.join(' | ')
}
