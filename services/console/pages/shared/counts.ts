import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { type AnswerState, useAnswer } from './api.ts'

/** Sessions counted as the parameters ask, anew every minute. */
export const useCounts = (parameters: URLSearchParams): AnswerState<{ data: SessionAggregates }> =>
  useAnswer<{ data: SessionAggregates }>(`/v1/sessions/aggregates?${parameters}`, {
    everyMs: 60_000,
  })
