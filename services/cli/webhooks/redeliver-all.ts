import { ApiError } from '../../../infra/errors/errors.ts'
import type { DeliveryRow } from '../../../projections/webhooks/rows.ts'
import type { Core } from '../../server/dependencies.ts'
import { redeliver } from '../../webhooks/redeliver/command.ts'
import type { Outcome } from '../operator/operate.ts'

/** What became of one of many redeliveries. */
export interface Redelivered {
  delivery_id: string
  event_id: string
  endpoint_id: string
  redelivered: boolean
  /** Why not; null where it is due again. */
  refused: string | null
}

/** One after the other; what cannot be delivered, as to a disabled endpoint, is told and left as it is. */
export async function redeliverAll(core: Core, deliveries: DeliveryRow[]): Promise<Redelivered[]> {
  const results = []
  for (const { id, event_id, endpoint_id } of deliveries) {
    const refused = await redeliver(core, { eventId: event_id, endpointId: endpoint_id }).then(
      () => null,
      reasonOf,
    )
    results.push({ delivery_id: id, event_id, endpoint_id, redelivered: refused === null, refused })
  }
  return results
}

/** A line for each. */
export function resultsOutcome(results: Redelivered[]): Outcome {
  const lines = results.map(
    ({ event_id, endpoint_id, refused }) => `${event_id} to ${endpoint_id}: ${refused ?? 'due again'}`,
  )
  return { data: results, text: lines.join('\n') || 'None.' }
}

/** Of a refusal; anything else ends the command. */
function reasonOf(error: unknown): string {
  if (error instanceof ApiError && error.status < 500) return error.message
  throw error
}
