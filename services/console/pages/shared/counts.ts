import { type AnswerState, useAnswer } from './api.ts'
import type { Counts, One } from './types.ts'

/** Sessions counted as the parameters ask, anew every minute. */
export const useCounts = (parameters: URLSearchParams): AnswerState<One<Counts>> =>
  useAnswer<One<Counts>>(`/v1/sessions/aggregates?${parameters}`, { everyMs: 60_000 })
