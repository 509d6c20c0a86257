import type { Topic } from '../log/port.ts'
import type { Tx } from '../postgres/pool.ts'
import type { RecordedEvent } from './codec.ts'

/**
 * A read model: tables, and a handler that is a function of the event and the rows it touches. No clock, no
 * randomness, no look-up elsewhere: that is what makes two rebuilds equal. Events may come twice, and events of
 * different partitions in any order; neither may change the result.
 */
export interface Projection {
  name: string
  /** Counts up when tables or handlers change; a new version is built from offset 0 beside the live one. */
  version: number
  topics: Topic[]
  /** Tables that readers see as views `read.<table>`; compared after a rebuild. */
  tables: string[]
  /** Creates the tables with the keys that `apply` needs, unqualified: search_path is the build's own schema. */
  ddl: string
  /** Creates the indexes that only readers need; a rebuild makes them after its load. */
  indexes: string
  /** Applies one partition's events in offset order; search_path is the build's own schema. */
  apply(tx: Tx, events: RecordedEvent[]): Promise<void>
  /**
   * What the events change that processes keep in memory, as ids; told to all of them together with the offset.
   * Absent = nothing.
   */
  subjectsOf?(events: RecordedEvent[]): string[]
}
