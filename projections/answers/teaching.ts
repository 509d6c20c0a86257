import { bankNumberOf, bankNumbersBetween, bankQuestion } from '../../infra/challenges/bank.ts'
import {
  answersAsAnother,
  type EngineVersion,
  engineVersionOf,
  isRecorded,
  recordedAnswer,
} from '../../infra/challenges/challenges.ts'
import { isPlausible } from '../../infra/challenges/plausible.ts'
import { questionBank } from '../../infra/challenges/questions.ts'
import type { MasterKey } from '../../infra/crypto/keyring.ts'
import type { EngineAnswer, EngineQuestion } from '../../infra/wire/collect/protocol.ts'
import type { EngineAnswersLearned } from '../../schemas/events.ts'
import { answerDigest } from './digests.ts'

const weekMs = 7 * 24 * 60 * 60 * 1000
// Questions are replaced week by week. Those of the next half year are answered as well, so that one lesson lasts that long.
const aheadMs = 26 * weekMs

/** Returns the questions for a trusted browser: all public ones, and the deployment's own of the next 26 weeks. */
export function lessonOf(keys: readonly MasterKey[], now: number): EngineQuestion[] {
  const numbers = bankNumbersBetween(now, now + aheadMs)
  const own = keys.flatMap((key) => numbers.map((number) => bankQuestion(number, key)))
  return [...Object.values(questionBank).flat(), ...own]
}

export interface Lesson {
  /** Null = the answers count for everybody. */
  organizationId: string | null
  questions: readonly EngineQuestion[]
  answers: readonly EngineAnswer[]
  userAgent: string
  by: string
  now: number
}

// An engine newer than those that were recorded may answer a few questions in a form of its own.
const maxImplausible = 0.02

/** Returns the event of what the deployment learns, or a sentence that says why it learns nothing. */
export function decideLesson({
  organizationId,
  questions,
  answers,
  userAgent,
  by,
  now,
}: Lesson): EngineAnswersLearned | string {
  const version = engineVersionOf(userAgent)
  if (!version) return `No engine is known for this browser: ${userAgent}`
  const asked = new Map(questions.map((question) => [question.id, question]))
  const given = answers.filter(({ id }) => asked.has(id))
  if (given.length < asked.size)
    return `The browser answered ${given.length} of ${asked.size} questions.`
  if (!isAsRecorded(given, version))
    return `The browser does not answer as its user agent would: ${userAgent}`
  const implausible = given.filter(({ id, answer }) => {
    const question = asked.get(id)
    return question !== undefined && !isPlausible(question, answer)
  })
  if (implausible.length > given.length * maxImplausible)
    return `The browser gave ${implausible.length} answers that no engine gives.`
  const own = given.filter(({ id }) => bankNumberOf(id) !== undefined)
  return {
    organization_id: organizationId,
    engine_family: version.family,
    browser: userAgent,
    answers: Object.fromEntries(own.map(({ id, answer }) => [String(id), answerDigest(answer)])),
    learned_by: by,
    learned_at: now,
  }
}

// A browser that calls itself another one, as developer tools let it, would teach that one's answers to everybody.
function isAsRecorded(answers: readonly EngineAnswer[], version: EngineVersion): boolean {
  if (!isRecorded(version))
    return !answersAsAnother(answers.filter(({ id }) => bankNumberOf(id) === undefined))
  const known = answers.flatMap(({ id, answer }) => {
    const recorded = recordedAnswer(version, id)
    return recorded === undefined ? [] : [recorded === answer]
  })
  return known.filter(Boolean).length >= known.length * 0.75
}
