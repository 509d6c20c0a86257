// Answers that browsers gave, in these terms:
//   question: asks for something that differs between browser engines; also a drawing, or a pseudo-question about TLS.
//   answer: a digest of what browsers returned.
//   class: the browsers that should answer alike, as a digest of their engine and version, of machines that draw alike,
//     or of a TLS fingerprint.
//   taught: given by a browser that an operator or administrator vouched for, so that no quorum of visitors is needed.

import type { Db } from '../../infra/postgres/pool.ts'
import { type AnswerRow, answers } from './projection.ts'

export type ClassAnswer = Omit<AnswerRow, 'id'>

interface AnswerFilter {
  /** Excludes questions that fewer visitors of the class answered, unless a trusted browser taught an answer. */
  minVisitors: number
  /** Ids of questions to read even with fewer visitors. */
  includedIds: number[]
}

export async function readAnswers(db: Db, filter: AnswerFilter): Promise<ClassAnswer[]> {
  const { rows } = await db.query<ClassAnswer>({
    name: 'read-answers',
    text: `select ${answers.selectWithout('a', 'id')} from read.answers a where (environment, class, question) in (
        select environment, class, question from read.answers group by environment, class, question
        having sum(json_array_length(visitors::json)) >= $1 or bool_or(json_array_length(taught::json) > 0) or question = any($2))`,
    values: [filter.minVisitors, filter.includedIds.map(String)],
  })
  return rows
}

export async function readAnswersByQuestion(db: Db, questions: number[]): Promise<ClassAnswer[]> {
  const { rows } = await db.query<ClassAnswer>({
    name: 'read-answers-by-question',
    text: `select ${answers.selectWithout('a', 'id')} from read.answers a where question = any($1)`,
    values: [questions.map(String)],
  })
  return rows
}
