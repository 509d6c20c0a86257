import type { Db } from '../../../infra/postgres/pool.ts'
import { deliveriesOf } from '../../../projections/webhooks/queries.ts'
import type { DeliveryRow } from '../../../projections/webhooks/tables.ts'
import { leasedDeliveries } from '../dispatch/leases.ts'

export interface Deliveries {
  /** Oldest first. */
  of(eventId: string): DeliveryRow[]
  /** Ids of those that are being made. */
  leased: ReadonlySet<string>
}

/** The deliveries of events. */
export async function loadDeliveries(db: Db, eventIds: string[]): Promise<Deliveries> {
  const rows = await deliveriesOf(db, eventIds)
  const byEvent = Map.groupBy(rows, ({ event_id }) => event_id)
  const pending = rows.filter(({ status }) => status === 'pending').map(({ id }) => id)
  const leased = pending.length > 0 ? await leasedDeliveries(db, pending) : new Set<string>()
  return { of: (eventId) => byEvent.get(eventId) ?? [], leased }
}
