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
// Bank questions rotate every week. A lesson covers the next half year's questions, so it stays valid that long.
const lessonMs = 26 * weekMs

/**
 * Returns the questions for a trusted browser: all public ones, and the deployment's private ones for the next 26
 * weeks.
 */
export function lessonQuestions(keys: readonly MasterKey[], now: number): EngineQuestion[] {
  const numbers = bankNumbersBetween(now, now + lessonMs)
  const bank = keys.flatMap((key) => numbers.map((number) => bankQuestion(number, key)))
  return [...Object.values(questionBank).flat(), ...bank]
}

export interface Lesson {
  /** Null = the answers apply to all organizations. */
  organizationId: string | null
  questions: readonly EngineQuestion[]
  answers: readonly EngineAnswer[]
  userAgent: string
  by: string
  now: number
}

// An engine newer than the recorded ones may answer a few questions in a new form.
const maxImplausible = 0.02

/** Returns the event with the learned answers, or the reason why nothing is learned. */
export function decideLesson({
  organizationId,
  questions,
  answers,
  userAgent,
  by,
  now,
}: Lesson): EngineAnswersLearned | string {
  const version = engineVersionOf(userAgent)
  if (!version) return `Unknown browser engine: ${userAgent}`
  const questionsById = new Map(questions.map((question) => [question.id, question]))
  const valid = answers.filter(({ id }) => questionsById.has(id))
  if (valid.length < questionsById.size)
    return `The browser answered only ${valid.length} of ${questionsById.size} questions.`
  if (!isAsRecorded(valid, version)) return `The answers do not match the user agent: ${userAgent}`
  const implausible = valid.filter(({ id, answer }) => {
    const question = questionsById.get(id)
    return question !== undefined && !isPlausible(question, answer)
  })
  if (implausible.length > valid.length * maxImplausible)
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

// Rejects a browser that claims to be another one, as developer tools allow: its answers would be learned for the wrong
// engine.
function isAsRecorded(answers: readonly EngineAnswer[], version: EngineVersion): boolean {
  if (!isRecorded(version))
    return !matchesAnotherEngine(answers.filter(({ id }) => bankNumberOf(id) === undefined))
  const matches = answers.flatMap(({ id, answer }) => {
    const recorded = recordedAnswer(version, id)
    return recorded === undefined ? [] : [recorded === answer]
  })
  return matches.filter(Boolean).length >= matches.length * 0.75
}
