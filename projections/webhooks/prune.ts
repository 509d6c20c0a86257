import type { Tx } from '../../infra/postgres/pool.ts'

export interface Pruned {
  partition: number
  /** Epoch milliseconds; what was created earlier goes. */
  before: number
}

/** After a partition's silence of weeks, all of it goes at once; so many events at a time bound what is held in memory. */
const chunk = 5000

/** Deletes the partition's events created before a time, their deliveries and attempts. One look-up when there are none. */
export async function prune(tx: Tx, { partition, before }: Pruned): Promise<void> {
  for (let deleted = chunk; deleted === chunk; ) {
    const { rows } = await tx.query<{ event_id: string }>({
      name: 'prune-webhook-events',
      // The order makes Postgres walk the index from its old end, however many rows it believes to match.
      text: `delete from webhook_events where event_id = any(array(select event_id from webhook_events
        where log_partition = $1 and created_at < $2 order by created_at limit ${chunk})) returning event_id`,
      values: [partition, before],
    })
    deleted = rows.length
    if (deleted > 0)
      await pruneDeliveries(
        tx,
        rows.map((row) => row.event_id),
      )
  }
}

async function pruneDeliveries(tx: Tx, eventIds: string[]): Promise<void> {
  const { rows } = await tx.query<{ delivery_id: string }>({
    name: 'prune-webhook-deliveries',
    text: `delete from webhook_deliveries where event_id = any($1) returning delivery_id`,
    values: [eventIds],
  })
  if (rows.length === 0) return
  await tx.query({
    name: 'prune-webhook-attempts',
    text: `delete from webhook_attempts where delivery_id = any($1)`,
    values: [rows.map((row) => row.delivery_id)],
  })
}
