import { createHmac } from 'node:crypto'
import { bankNumbersOf } from '../../../infra/challenges/bank.ts'
import {
  answersAsAnother,
  type EngineFamily,
  type EngineVersion,
  engineName,
  engineVersionOf,
  isRecorded,
  questionsOf,
  recordedAnswer,
} from '../../../infra/challenges/challenges.ts'
import { isPlausible, repeatedTexts } from '../../../infra/challenges/plausible.ts'
import { isSameText } from '../../../infra/crypto/same-text.ts'
import { memoized } from '../../../infra/lru.ts'
import {
  type AnswerKey,
  type Answers,
  answerKeyText,
  answerText,
  type EngineAnswer,
  type EngineQuestion,
} from '../../../infra/wire/collect/protocol.ts'
import { provesSimulation, type SimulationKey } from '../../../infra/wire/collect/simulation.ts'
import type {
  AnswerClass,
  LearnedAnswers,
  LearningProgress,
} from '../../../projections/answers/learned.ts'
import type { Environment } from '../../../schemas/events.ts'
import type { Snapshot } from '../../../schemas/observations.ts'
import type { Agent } from './agent.ts'
import type { DocumentState, SessionState } from './state.ts'

/** How a snapshot answers its document, and whether its engine and graphics answer as the claimed ones do. */
export interface AnswerFacts {
  /** `echoed`: as SDKs before 0.2 did, which give the document's texts back in clear. */
  proof: 'keyed' | 'echoed' | 'wrong' | 'none'
  engine: EngineVerdict
  /**
   * What the engine was compared with: the repository's recorded answers, or those that the deployment learned.
   * `simulated`: with nothing, because a script that `tidegate dev` trusts proved itself.
   */
  engineBy: 'recorded' | 'learned' | 'simulated'
  /** Set where the answers are plausible, and the deployment has not learned the engine, so that they prove little. */
  notLearned: (Pick<LearningProgress, 'visitors' | 'needed'> & { engine: EngineFamily }) | null
  /** Answers to the document's questions, the deployment's own included. */
  toQuestions: readonly EngineAnswer[]
  canvas: 'as_others' | 'otherwise' | 'unknown'
}

/**
 * `to_come`: its answers to the deployment's own questions come with the next body. `unrecorded`: its answers are not
 * known, as with Apple's engine, and they are not those of another one.
 */
type EngineVerdict =
  | 'as_claimed'
  | 'otherwise'
  | 'to_come'
  | 'unanswered'
  | 'unrecorded'
  | 'unknown'

export const noAnswers: AnswerFacts = {
  proof: 'none',
  engine: 'unknown',
  engineBy: 'recorded',
  canvas: 'unknown',
  notLearned: null,
  toQuestions: [],
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
  toBank: BankAnswers
}

/** Answers to the deployment's own questions of a document, in their order; undefined where one is missing. */
type BankAnswers = readonly (EngineAnswer | undefined)[] | 'to_come'

export function judgeAnswers(input: AnswersInput): AnswerFacts {
  const proof = proofOf(input.snapshot, input.document)
  if (isSimulated(input))
    return { ...noAnswers, proof, engine: 'as_claimed', engineBy: 'simulated' }
  const toQuestions = [...answersToRecorded(input), ...givenOf(input.toBank)]
  return {
    proof,
    canvas: canvasOf(input),
    toQuestions,
    ...engineOf(input),
  }
}

function isSimulated({ simulationKey, sessionId, snapshot, document }: AnswersInput): boolean {
  const { challenge } = document
  if (!simulationKey || challenge === '') return false
  return provesSimulation(simulationKey, { sessionId, challenge }, snapshot.proofs.engine_answers)
}

export function verifiesAnswers(key: AnswerKey, answers: Answers, mac: string): boolean {
  const own = createHmac('sha256', answerKeyText(key))
    .update(answerText(answers))
    .digest('base64url')
  return isSameText(own, mac)
}

/** Whether the snapshot answers its document. */
function proofOf({ proofs }: Snapshot, document: DocumentState): AnswerFacts['proof'] {
  const { challenge, timing_nonce: timingNonce } = document
  // A document whose opening was forgotten has nothing to compare with.
  if (challenge === '') return 'keyed'
  if (proofs.answer_mac !== null) {
    const answers = { canvas: proofs.canvas_challenge_hash, engine: proofs.engine_answers }
    return verifiesAnswers({ challenge, timingNonce }, answers, proofs.answer_mac)
      ? 'keyed'
      : 'wrong'
  }
  if (proofs.challenge === null || proofs.timing_nonce === null) return 'none'
  return proofs.challenge === challenge && proofs.timing_nonce === timingNonce ? 'echoed' : 'wrong'
}

/**
 * Compares the engine with the claimed one. The repository's questions only contradict once the deployment has learned
 * the answers to its own, because their answers are public.
 */
function engineOf(input: AnswersInput): Pick<AnswerFacts, 'engine' | 'engineBy' | 'notLearned'> {
  const { document, userAgent, learned, environment, organizationId, toBank } = input
  const version = engineVersionOf(userAgent)
  const recorded = byRecorded(input, version)
  const byRepository = { engine: recorded, engineBy: 'recorded', notLearned: null } as const
  if (recorded === 'otherwise' || recorded === 'unanswered') return byRepository
  if (!version || document.challenge === '') return byRepository
  const of = { environment, organizationId, class: version.family }
  const { isLearned, visitors, needed } = learned.progress(of)
  if (isLearned)
    return { engine: byBank(toBank, { learned, of }), engineBy: 'learned', notLearned: null }
  const engine = byForm(input) ?? recorded
  const isPossible = engine === 'as_claimed' || engine === 'unrecorded'
  const notLearned = isPossible ? { engine: version.family, visitors, needed } : null
  return { engine, engineBy: 'recorded', notLearned }
}

function byRecorded(input: AnswersInput, version: EngineVersion | null): EngineVerdict {
  const { snapshot, document, userAgent: _, ...known } = input
  const answers = new Map(snapshot.proofs.engine_answers.map(({ id, answer }) => [id, answer]))
  const questions = recordedQuestions(document)
  if (questions.some(({ id }) => !answers.has(id))) return 'unanswered'
  if (!version) return 'unknown'
  const isRight = questions.map(({ id }) =>
    isExpected(answers.get(id) ?? '', { version, question: id, ...known }),
  )
  const judged = verdictOf(isRight)
  if (judged !== 'unknown' || isRecorded(version) || questions.length === 0) return judged
  return answersAsAnother(answersToRecorded(input)) ? 'otherwise' : 'unrecorded'
}

// A new version of an engine may throw another error than those that were recorded.
const maxImplausible = 0.25

/** Judges answers that nothing is known of; undefined where an engine may have given them. */
function byForm(input: AnswersInput): 'otherwise' | 'unanswered' | undefined {
  const { document, learned, toBank } = input
  const bank = bankNumbersOf(document.challenge, document.opened_at).flatMap((number) =>
    learned.ownQuestions(number),
  )
  if (bank.length > 0 && toBank !== 'to_come' && toBank.includes(undefined)) return 'unanswered'
  const questions = new Map([...recordedQuestions(document), ...bank].map((one) => [one.id, one]))
  const given = [...answersToRecorded(input), ...givenOf(toBank)]
  const implausible = given.filter(({ id, answer }) => {
    const question = questions.get(id)
    return question !== undefined && !isPlausible(question, answer)
  })
  return implausible.length + repeatedTexts(given) > given.length * maxImplausible
    ? 'otherwise'
    : undefined
}

function answersToRecorded({
  snapshot,
  document,
}: Pick<AnswersInput, 'snapshot' | 'document'>): EngineAnswer[] {
  const ids = new Set(recordedQuestions(document).map(({ id }) => id))
  return snapshot.proofs.engine_answers.filter(({ id }) => ids.has(id))
}

// An SDK answers this to a kind of question that it does not know.
const unknownKind = 'object null'

const givenOf = (toBank: BankAnswers): EngineAnswer[] =>
  toBank === 'to_come' ? [] : toBank.filter((one) => one !== undefined)

/**
 * The answers to the deployment's own questions, which come after the snapshot. Until they do, those of the session's
 * document before count. Ids of other deployments' keys are left out.
 */
export function bankAnswersOf(
  { documents, late_answers: late }: SessionState,
  { snapshot, document, learned }: Pick<AnswersInput, 'snapshot' | 'document' | 'learned'>,
): BankAnswers {
  if (document.challenge === '') return []
  const answers = new Map(
    [...snapshot.proofs.engine_answers, ...(late?.answers ?? [])]
      .filter(({ answer }) => answer !== unknownKind)
      .map((one) => [one.id, one]),
  )
  const toBankOf = ({ challenge, opened_at }: DocumentState) =>
    bankNumbersOf(challenge, opened_at).map((number) =>
      learned
        .ownQuestions(number)
        .map(({ id }) => answers.get(id))
        .find((one) => one !== undefined),
    )
  const given = toBankOf(document)
  if (document.is_answered || !given.includes(undefined)) return given
  const answered = documents.find(({ hash }) => hash === late?.document)
  return answered ? toBankOf(answered) : 'to_come'
}

function byBank(
  toBank: BankAnswers,
  { learned, of }: { learned: LearnedAnswers; of: AnswerClass },
): EngineVerdict {
  if (toBank === 'to_come') return toBank
  if (toBank.includes(undefined)) return 'unanswered'
  return verdictOf(
    toBank.map((one) => one && learned.right({ ...of, question: String(one.id) })?.has(one.answer)),
  )
}

// Fewer comparable answers decide nothing.
const enough = 3

/** By answers that are right, wrong, or not known (undefined). */
function verdictOf(answers: (boolean | undefined)[]): EngineVerdict {
  const judged = answers.filter((isRight) => isRight !== undefined)
  if (judged.length < enough) return 'unknown'
  const share = judged.filter(Boolean).length / judged.length
  return share >= 0.75 ? 'as_claimed' : share < 0.5 ? 'otherwise' : 'unknown'
}

// Each batch of a document needs its questions again.
const questionsOfChallenge = memoized(2000, questionsOf)

const recordedQuestions = ({ challenge }: DocumentState): EngineQuestion[] =>
  challenge === '' ? [] : questionsOfChallenge(challenge)

interface Expectation extends Pick<AnswersInput, 'environment' | 'organizationId' | 'learned'> {
  version: EngineVersion
  question: number
}

// By learned answers, or else by recorded ones. Undefined where there are none.
function isExpected(
  answer: string,
  { version, question, learned, ...of }: Expectation,
): boolean | undefined {
  const seen = learned.right({ ...of, class: engineName(version), question: String(question) })
  if (seen) return seen.has(answer)
  const recorded = recordedAnswer(version, question)
  return recorded === undefined ? undefined : answer === recorded
}

function canvasOf({
  snapshot,
  document,
  agent,
  learned,
  ...of
}: AnswersInput): AnswerFacts['canvas'] {
  const answer = snapshot.proofs.canvas_challenge_hash
  const canvasClass = canvasClassOf(snapshot, agent)
  const isNoise = snapshot.canvas.noise_detected !== false
  if (answer === null || canvasClass === null || isNoise || !document.canvas_seed) return 'unknown'
  const others = learned.right({
    ...of,
    class: canvasClass,
    question: `canvas ${document.canvas_seed}`,
  })
  if (!others) return 'unknown'
  return others.has(String(answer)) ? 'as_others' : 'otherwise'
}

/** Machines that draw alike: renderer, system, browser and its version. Null where one of them is unknown. */
export function canvasClassOf(
  { webgl }: Snapshot,
  { system, browser, major }: Agent,
): string | null {
  const parts = [webgl.renderer, system, browser, major]
  return parts.some((part) => part === null) ? null : parts.join(' | ')
}
