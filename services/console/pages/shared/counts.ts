import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { type ResponseState, useResponse } from './api.ts'

/** Returns session counts for the parameters, refreshed every minute. */
export const useCounts = (
  parameters: URLSearchParams,
): ResponseState<{ data: SessionAggregates }> =>
  useResponse<{ data: SessionAggregates }>(`/v1/sessions/aggregates?${parameters}`, {
    pollMs: 60_000,
  })
