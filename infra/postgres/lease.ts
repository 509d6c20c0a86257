import { column } from './table.ts'

/**
 * Columns of a lease: a row belongs to its owner until `expires_at`, so only one process works on it. The owner renews
 * the lease during the work; the leases of a dead process expire. Times are epoch milliseconds by the database's clock,
 * because clocks of processes differ.
 */
export const leaseColumns = { owner: column.text(), expires_at: column.bigint() }

/** SQL for the current time of the database's clock, which advances within a transaction. */
export const databaseNow = '(extract(epoch from clock_timestamp()) * 1000)::bigint'
