import type { Db } from '../../infra/postgres/pool.ts'
import { type AnswerRow, answers } from './projection.ts'

export type ClassAnswer = Omit<AnswerRow, 'id'>

/** Every answer of classes and questions that at least `visitors` visitors answered, or an operator's browser. */
export async function readAnswers(db: Db, visitors: number): Promise<ClassAnswer[]> {
  const { rows } = await db.query<ClassAnswer>({
    name: 'read-answers',
    text: `select ${answers.selectWithout('a', 'id')} from read.answers a where (environment, class, question) in (
        select environment, class, question from read.answers group by environment, class, question
        having sum(json_array_length(visitors::json)) >= $1 or bool_or(by_operator))`,
    values: [visitors],
  })
  return rows
}
