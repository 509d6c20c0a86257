import type { VisitorErased } from '../../schemas/events.ts'
import type { Topic } from '../log/port.ts'
import type { Cte } from '../postgres/arrays.ts'
import type { Migrations } from '../postgres/migrations.ts'
import type { Tx } from '../postgres/pool.ts'
import type { RecordedEvent } from './event.ts'

/**
 * An organization's retention cutoffs: data older than these times (epoch milliseconds) has expired. null = none has.
 */
export interface RetentionCutoffs {
  organization_id: string
  sessions_before: number | null
  decisions_before: number | null
  visitors_before: number | null
  webhooks_before: number | null
}

/** Deletes a small batch of expired data. Returns true if more may be left. */
export type Prune = (tx: Tx, cutoffs: RetentionCutoffs[]) => Promise<boolean>

/** SQL conditions that select the rows `t` of a table to compare after a rebuild. They get the build's schema. */
export interface ComparedRows {
  always?: (schema: string) => string
  /** Additional condition for organizations with expired data, whose rows may depend on when that data was deleted. */
  whenDataExpired?: (schema: string) => string
}

/**
 * A read model: tables, and a deterministic handler. Its result depends only on the event and the rows it touches,
 * never on a clock, randomness or other sources, so two rebuilds are equal. Repeated events, and any order of events of
 * different partitions, give the same result.
 */
export interface Projection {
  name: string
  /** Incremented when tables or handlers change. A new version is built from offset 0 beside the live one. */
  version: number
  topics: Topic[]
  /** The schema of its bookkeeping and readers' views. Default: `tidegate` for bookkeeping, `read` for views. */
  home?: string
  /** Event types to read; others are dropped undecoded. Absent = all types of the topics. */
  types?: ReadonlySet<string>
  /** Tables that readers see as views `read.<table>`. Compared after a rebuild. */
  tables: string[]
  /** Additional views in `read`, by name. Each function returns the `select` on a build's schema. */
  views?: Readonly<Record<string, (schema: string) => string>>
  /** Tables that events don't fill, but that its views or rows refer to. */
  migrations?: Migrations[]
  /**
   * SQL expression that sets the configuration parameters that its triggers read. Evaluated in each transaction that
   * applies events, under the build's lock.
   */
  setting?: string
  /** Creates the tables with the keys that `apply` needs. Names are unqualified: search_path is the build's schema. */
  ddl: string
  /** Creates the indexes that only readers need. A rebuild creates them after loading. */
  indexes: string
  /**
   * Tables where `apply` stores the `event_id` of each event. An event found there is not applied again, so it can't
   * restore an old state.
   */
  appliedIn: string[]
  /**
   * Applies the events. Returns the statements to run together with the commit; writes that later ones depend on are
   * run here instead.
   */
  apply(tx: Tx, events: RecordedEvent[]): Promise<Cte[]>
  /**
   * Returns true for events that must not be applied concurrently with others, because the handler reads and writes
   * rows that events of other partitions change too. All other events are applied concurrently.
   */
  isExclusive(event: RecordedEvent): boolean
  /**
   * Deletes the rows of erased sessions, in a projection with rows by session, which must read the topic of
   * `VisitorErased`. `apply` gets events of erased sessions marked with `isErased`, before or after this call. For them
   * it may change only rows that others depend on.
   */
  erase?(tx: Tx, erased: VisitorErased[]): Promise<void>
  /** Returns the ids of changed entities that processes cache. Each process is notified of them. */
  changedIdsOf?(events: RecordedEvent[]): string[]
  /** Creates a function that deletes expired data from a build, concurrently with `apply`. Absent = nothing expires. */
  createPrune?(): Prune
  /** Rows to compare after a rebuild, by table. Default: all. */
  comparedRows?: Readonly<Record<string, ComparedRows | 'not compared'>>
  /**
   * Pause in milliseconds after each batch, which makes the next one larger. For read models where latency doesn't
   * matter.
   */
  batchDelayMs?: number
}

export const appliedRow = ({ meta }: RecordedEvent) => ({ event_id: meta.eventId })

/** Replaces the id's state with the result of `step`, which gets undefined if there is no state yet. */
export function evolveState<S>(
  states: Map<string, S>,
  id: string,
  step: (state: S | undefined) => S | undefined,
): void {
  const next = step(states.get(id))
  if (next) states.set(id, next)
}
