import { column } from './table.ts'

/**
 * A row is leased to its owner until `expires_at`: others leave it alone, so that one process works on it. The owner
 * renews the lease while the work goes on, and whatever a process that died had leased is free soon after. Leases are
 * in epoch milliseconds of the database's clock, because those of two processes differ.
 */
export const leaseColumns = { owner: column.text(), expires_at: column.bigint() }

/** The database's clock, as it goes on within a transaction too. */
export const databaseNow = '(extract(epoch from clock_timestamp()) * 1000)::bigint'
