import {
  bankIdOf,
  bankNumberOf,
  bankNumbersOf,
  bankQuestion,
} from '../../../../infra/challenges/bank.ts'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import type { EngineAnswer } from '../../../../infra/wire/collect/protocol.ts'
import { type LearnedAnswers, minVisitors } from '../../../../projections/answers/learned.ts'

/** Opening time of test documents. */
export const startedAt = Date.UTC(2026, 2, 24, 20)

const master = createKeyring(Buffer.alloc(32, 7).toString('base64')).current

/** Returns the learned answer to a bank question. */
export const rightTo = (id: number | string): string => `right to ${id}`

/** Returns the learned answers to a document's bank questions. */
export const rightAnswers = (challenge: string): EngineAnswer[] =>
  ownIdsOf(challenge).map((id) => ({ id, answer: rightTo(id) }))

export const ownIdsOf = (challenge: string): number[] =>
  bankNumbersOf(challenge, startedAt).map((number) => bankIdOf(number, master))

/** A deployment that has learned only the bank questions, for every engine. */
export const taught: LearnedAnswers = {
  bankQuestions: (number) => [bankQuestion(number, master)],
  progress: () => ({ isLearned: true, visitors: minVisitors, needed: minVisitors }),
  answersTo: ({ question }) =>
    /^\d+$/.test(question) && bankNumberOf(Number(question)) !== undefined
      ? new Set([rightTo(question)])
      : undefined,
}
