import {
  bankIdOf,
  bankNumberOf,
  bankNumbersOf,
  bankQuestion,
} from '../../../../infra/challenges/bank.ts'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import type { EngineAnswer } from '../../../../infra/wire/collect/protocol.ts'
import { type LearnedAnswers, minVisitors } from '../../../../projections/answers/learned.ts'

/** When documents of tests are opened. */
export const startedAt = Date.UTC(2026, 2, 24, 20)

const master = createKeyring(Buffer.alloc(32, 7).toString('base64')).current

/** The answer that counts for one of the deployment's own questions. */
export const rightTo = (id: number | string): string => `right to ${id}`

/** Right answers to the deployment's own questions of a document. */
export const rightAnswers = (challenge: string): EngineAnswer[] =>
  ownIdsOf(challenge).map((id) => ({ id, answer: rightTo(id) }))

export const ownIdsOf = (challenge: string): number[] =>
  bankNumbersOf(challenge, startedAt).map((number) => bankIdOf(number, master))

/** A deployment that has learned its own questions of every engine, and nothing else. */
export const taught: LearnedAnswers = {
  bankQuestions: (number) => [bankQuestion(number, master)],
  progress: () => ({ isLearned: true, visitors: minVisitors, needed: minVisitors }),
  answersTo: ({ question }) =>
    /^\d+$/.test(question) && bankNumberOf(Number(question)) !== undefined
      ? new Set([rightTo(question)])
      : undefined,
}
