import { iso } from '../../../infra/iso.ts'
import { type DeliveryStats, recentDeliveries } from '../../../projections/webhooks/queries.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { EndpointHealthSummary } from './schemas.ts'

/** Period of events whose deliveries count. */
export const healthPeriodMs = 24 * 60 * 60 * 1000

/** Returns `health` of an endpoint in API responses. */
export function summarizeHealth(
  endpoint: Pick<EndpointRow, 'status' | 'flagged_reason'>,
  stats: DeliveryStats,
): EndpointHealthSummary {
  const { attempted, succeeded, pending, latencyP50, latencyP95, lastFailure } = stats
  return {
    status: healthStatus(endpoint, stats),
    deliveries: attempted,
    succeeded,
    pending,
    success_rate: attempted === 0 ? null : succeeded / attempted,
    latency_p50_ms: latencyP50 === null ? null : Math.round(latencyP50),
    latency_p95_ms: latencyP95 === null ? null : Math.round(latencyP95),
    last_failure: lastFailure && { ...lastFailure, at: iso(lastFailure.at) },
  }
}

function healthStatus(
  { status, flagged_reason }: Pick<EndpointRow, 'status' | 'flagged_reason'>,
  { attempted, recentFailures }: DeliveryStats,
): EndpointHealthSummary['status'] {
  if (status === 'disabled') return 'disabled'
  if (flagged_reason !== null) return 'failing'
  if (attempted === 0) return 'idle'
  return recentFailures >= Math.min(attempted, recentDeliveries) / 2 ? 'failing' : 'healthy'
}
