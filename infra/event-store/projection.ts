import type { VisitorErased } from '../../schemas/events.ts'
import type { Topic } from '../log/port.ts'
import type { Cte } from '../postgres/arrays.ts'
import type { Migrations } from '../postgres/migrations.ts'
import type { Tx } from '../postgres/pool.ts'
import type { RecordedEvent } from './event.ts'

/**
 * An organization's retention cutoffs: data older than these times has expired. Epoch milliseconds; null = none has.
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

/** SQL conditions on the rows `t` of a table in a build's schema: a rebuild only compares rows that meet them. */
export interface ComparedRows {
  always?: (schema: string) => string
  /** Condition for organizations with expired data, whose other rows depend on when the data was deleted. */
  ofExpired?: (schema: string) => string
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
  /** Further views in `read`, by name. Returns the select over a build's schema. */
  views?: Readonly<Record<string, (schema: string) => string>>
  /** Tables that no event fills, which its views or rows refer to. */
  migrations?: Migrations[]
  /**
   * SQL expression that sets what its triggers read. Evaluated in each transaction that applies events, under the
   * build's lock.
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
   * Reads the rows it needs and returns the statements to run together with the commit. Writes that other writes depend
   * on it runs itself.
   */
  apply(tx: Tx, events: RecordedEvent[]): Promise<Cte[]>
  /**
   * Returns true for events that must not be applied concurrently with others, because the handler reads and writes
   * rows that events of other partitions change too. All other events are applied concurrently.
   */
  isExclusive(event: RecordedEvent): boolean
  /**
   * Deletes the rows of erased sessions, in a projection with rows by session, which must read the topic of
   * `VisitorErased`. `apply` gets events of erased sessions marked with `isErased`, before or after this call, and may
   * then change only rows that others depend on.
   */
  erase?(tx: Tx, erased: VisitorErased[]): Promise<void>
  /** Returns ids of changed entities that processes cache. All processes are notified of them with the offset. */
  subjectsOf?(events: RecordedEvent[]): string[]
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
export function evolveIn<S>(
  states: Map<string, S>,
  id: string,
  step: (state: S | undefined) => S | undefined,
): void {
  const next = step(states.get(id))
  if (next) states.set(id, next)
}
