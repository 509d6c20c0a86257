import { bankNumberOf, bankNumbersBetween, bankQuestion } from '../../infra/challenges/bank.ts'
import {
  type EngineVersion,
  engineVersionOf,
  isRecorded,
  matchesAnotherEngine,
  recordedAnswer,
} from '../../infra/challenges/challenges.ts'
import { isPlausible } from '../../infra/challenges/plausible.ts'
import { questionBank } from '../../infra/challenges/questions.ts'
import type { MasterKey } from '../../infra/crypto/keyring.ts'
import type { EngineAnswer, EngineQuestion } from '../../infra/wire/collect/protocol.ts'
import type { EngineAnswersLearned } from '../../schemas/events.ts'
import { answerDigest } from './digests.ts'

const weekMs = 7 * 24 * 60 * 60 * 1000
// Bank questions rotate every week.
const coveredMs = 26 * weekMs

/** Returns the questions for a trusted browser: all public ones, and the private ones for the next 26 weeks. */
export function teachingQuestions(keys: readonly MasterKey[], now: number): EngineQuestion[] {
  const numbers = bankNumbersBetween(now, now + coveredMs)
  const bank = keys.flatMap((key) => numbers.map((number) => bankQuestion(number, key)))
  return [...Object.values(questionBank).flat(), ...bank]
}

export interface TaughtAnswers {
  /** null = all organizations. */
  organizationId: string | null
  questions: readonly EngineQuestion[]
  answers: readonly EngineAnswer[]
  userAgent: string
  by: string
  now: number
}

// New engine versions may answer a few questions in an unknown format.
const maxImplausibleShare = 0.02

/** Returns the event data with the learned answers, or an error message if the answers are rejected. */
export function decideEngineAnswers({
  organizationId,
  questions,
  answers,
  userAgent,
  by,
  now,
}: TaughtAnswers): EngineAnswersLearned | string {
  const version = engineVersionOf(userAgent)
  if (!version) return `Unknown browser engine: ${userAgent}`
  const questionsById = new Map(questions.map((question) => [question.id, question]))
  const valid = answers.filter(({ id }) => questionsById.has(id))
  if (valid.length < questionsById.size)
    return `The browser answered only ${valid.length} of ${questionsById.size} questions.`
  if (!matchesAgent(valid, version)) return `The answers do not match the user agent: ${userAgent}`
  const implausible = valid.filter(({ id, answer }) => {
    const question = questionsById.get(id)
    return question !== undefined && !isPlausible(question, answer)
  })
  if (implausible.length > valid.length * maxImplausibleShare)
    return `The browser gave ${implausible.length} answers that no engine can give.`
  const bank = valid.filter(({ id }) => bankNumberOf(id) !== undefined)
  return {
    organization_id: organizationId,
    engine_family: version.family,
    browser: userAgent,
    answers: Object.fromEntries(bank.map(({ id, answer }) => [String(id), answerDigest(answer)])),
    learned_by: by,
    learned_at: now,
  }
}

// Returns false if the browser claims to be another one, for example through its developer tools.
function matchesAgent(answers: readonly EngineAnswer[], version: EngineVersion): boolean {
  if (!isRecorded(version))
    return !matchesAnotherEngine(answers.filter(({ id }) => bankNumberOf(id) === undefined))
  const matches = answers.flatMap(({ id, answer }) => {
    const recorded = recordedAnswer(version, id)
    return recorded === undefined ? [] : [recorded === answer]
  })
  return matches.filter(Boolean).length >= matches.length * 0.75
}
