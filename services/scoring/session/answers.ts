import { createHmac } from 'node:crypto'
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
import { isPlausible, repeats } from '../../../infra/challenges/plausible.ts'
import { isSameText } from '../../../infra/crypto/same-text.ts'
import { createLru } from '../../../infra/lru.ts'
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

/** Browsers that are expected to answer alike. */
export interface AnswerClass {
  environment: Environment
  organizationId: string
  /** An engine and its version, an engine for the deployment's own questions, machines that draw alike, or a handshake. */
  class: string
}

export interface AnswerQuery extends AnswerClass {
  /** The id of a question, `canvas` and the seed of a drawing, or `handshake`. */
  question: string
}

/** Answers of honest sessions and of the operator's browsers, learned from the log. */
export interface LearnedAnswers {
  /** undefined where too few did. */
  right(of: AnswerQuery): Pick<ReadonlySet<string>, 'has'> | undefined
  /** The questions that a number of the bank has, by the deployment's keys. */
  ownQuestions(number: number): EngineQuestion[]
  /** Whether an engine's answers to most of the deployment's own questions that are frequent are known. */
  knowsBank(of: AnswerClass): boolean
}

export const nothingLearned: LearnedAnswers = {
  right: () => undefined,
  ownQuestions: () => [],
  knowsBank: () => false,
}

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
  /** Answers to the document's questions, the deployment's own included. */
  toQuestions: readonly EngineAnswer[]
  canvas: 'as_others' | 'otherwise' | 'unknown'
}

/** `unrecorded`: its answers are not known, as with Apple's engine, and they are not those of another one. */
export type EngineVerdict = 'as_claimed' | 'otherwise' | 'unanswered' | 'unrecorded' | 'unknown'

export const noAnswers: AnswerFacts = {
  ...{ proof: 'none', engine: 'unknown', engineBy: 'recorded', canvas: 'unknown', toQuestions: [] },
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
}

export function judgeAnswers(input: AnswersInput): AnswerFacts {
  const proof = proofOf(input.snapshot, input.document)
  if (isSimulated(input)) return { ...noAnswers, proof, engine: 'as_claimed', engineBy: 'simulated' }
  const toBank = answersToBank(input)
  const toQuestions = [...answersToRecorded(input), ...toBank.filter((one) => one !== undefined)]
  return {
    ...{ proof, canvas: canvasOf(input), toQuestions },
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

/** Whether the snapshot answers its document. */
function proofOf({ proofs }: Snapshot, document: DocumentState): AnswerFacts['proof'] {
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
  const recorded = byRecorded(input, toBank)
  const decides = recorded === 'otherwise' || recorded === 'unanswered'
  const learned = decides ? undefined : byBank(input, toBank)
  return learned ? { engine: learned, engineBy: 'learned' } : { engine: recorded, engineBy: 'recorded' }
}

function byRecorded(input: AnswersInput, toBank: (EngineAnswer | undefined)[]): EngineVerdict {
  const { snapshot, document, userAgent, ...known } = input
  const answers = new Map(snapshot.proofs.engine_answers.map(({ id, answer }) => [id, answer]))
  const questions = recordedQuestions(document)
  if (questions.some(({ id }) => !answers.has(id))) return 'unanswered'
  const version = engineVersionOf(userAgent)
  if (!version) return 'unknown'
  const isRight = questions.map(({ id }) =>
    isExpected(answers.get(id) ?? '', { version, question: id, ...known }),
  )
  const judged = verdictOf(isRight)
  return judged === 'unknown' && !isRecorded(version) && questions.length > 0
    ? ofUnrecorded(input, toBank)
    : judged
}

// An engine's own answers are plausible, even where a new version throws another error.
const mayBeImplausible = 0.25

/** Judges an engine that nobody recorded, which answers neither as another one nor as no engine does. */
function ofUnrecorded(input: AnswersInput, toBank: (EngineAnswer | undefined)[]): EngineVerdict {
  const { document, learned } = input
  const answers = answersToRecorded(input)
  if (answersAsAnother(answers)) return 'otherwise'
  const bank = bankNumbersOf(document.challenge, document.opened_at).flatMap((number) =>
    learned.ownQuestions(number),
  )
  const questions = new Map([...recordedQuestions(document), ...bank].map((one) => [one.id, one]))
  const given = [...answers, ...toBank.filter((one) => one !== undefined)]
  const wrong = given.filter(({ id, answer }) => {
    const question = questions.get(id)
    return question !== undefined && !isPlausible(question, answer)
  })
  return wrong.length + repeats(given) > given.length * mayBeImplausible ? 'otherwise' : 'unrecorded'
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

// For each of the document's questions of the bank. Ids of other deployments' keys are left out.
function answersToBank({ snapshot, document, learned }: AnswersInput): (EngineAnswer | undefined)[] {
  if (document.challenge === '') return []
  const answers = new Map(
    snapshot.proofs.engine_answers.filter(({ answer }) => answer !== unknownKind).map((one) => [one.id, one]),
  )
  return bankNumbersOf(document.challenge, document.opened_at).map((number) =>
    learned
      .ownQuestions(number)
      .map(({ id }) => answers.get(id))
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
    toBank.map((one) => one && learned.right({ ...engine, question: String(one.id) })?.has(one.answer)),
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

// By challenge, because each batch of a document needs its questions again.
const cachedQuestions = createLru<string, EngineQuestion[]>(2000)

function recordedQuestions({ challenge }: DocumentState): EngineQuestion[] {
  if (challenge === '') return []
  const known = cachedQuestions.get(challenge) ?? questionsOf(challenge)
  cachedQuestions.set(challenge, known)
  return known
}

interface Expectation extends Pick<AnswersInput, 'environment' | 'organizationId' | 'learned'> {
  version: EngineVersion
  question: number
}

// By learned answers, or else by recorded ones. Undefined where there are none.
function isExpected(answer: string, { version, question, learned, ...of }: Expectation): boolean | undefined {
  const seen = learned.right({ ...of, class: engineName(version), question: String(question) })
  if (seen) return seen.has(answer)
  const recorded = recordedAnswer(version, question)
  return recorded === undefined ? undefined : answer === recorded
}

function canvasOf({ snapshot, document, agent, learned, ...of }: AnswersInput): AnswerFacts['canvas'] {
  const answer = snapshot.proofs.canvas_challenge_hash
  const canvasClass = canvasClassOf(snapshot, agent)
  const isNoise = snapshot.canvas.noise_detected !== false
  if (answer === null || canvasClass === null || isNoise || !document.canvas_seed) return 'unknown'
  const others = learned.right({ ...of, class: canvasClass, question: `canvas ${document.canvas_seed}` })
  if (!others) return 'unknown'
  return others.has(String(answer)) ? 'as_others' : 'otherwise'
}

/** Machines that draw alike: renderer, system, browser and its version. Null where one of them is unknown. */
export function canvasClassOf({ webgl }: Snapshot, { system, browser, major }: Agent): string | null {
  const parts = [webgl.renderer, system, browser, major]
  return parts.some((part) => part === null) ? null : parts.join(' | ')
}
