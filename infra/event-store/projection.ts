import type { VisitorErased } from '../../schemas/events.ts'
import type { Topic } from '../log/port.ts'
import type { Part } from '../postgres/arrays.ts'
import type { Migrations } from '../postgres/migrations.ts'
import type { Tx } from '../postgres/pool.ts'
import type { RecordedEvent } from './event.ts'

/** What has ended of an organization's data: what is older than these times, epoch milliseconds; null = nothing. */
export interface EndedData {
  organization_id: string
  sessions_before: number | null
  decisions_before: number | null
  visitors_before: number | null
  webhooks_before: number | null
}

/** Deletes some of what has ended, in little time; whether more may be left. */
export type Prune = (tx: Tx, ended: EndedData[]) => Promise<boolean>

/** Conditions on the rows `t` of a table in a build's schema: a rebuild compares no others. */
export interface ComparedRows {
  always?: (schema: string) => string
  /** SQL for organizations whose data have ended: what others there are depends on when they were deleted. */
  ofEnded?: (schema: string) => string
}

/**
 * A read model: tables, and a handler that is a function of the event and the rows it touches. It uses no
 * clock, no randomness and no look-up elsewhere, so two rebuilds are equal. Events may come twice, and those
 * of different partitions in any order; neither changes the result.
 */
export interface Projection {
  name: string
  /** Counts up when tables or handlers change; a new version is built from offset 0 beside the live one. */
  version: number
  topics: Topic[]
  /** The schema that has its bookkeeping and its views for readers. Absent = Tidegate's own, `tidegate` and `read`. */
  home?: string
  /** Types of the events that it reads of its topics; others are passed over undecoded. Absent = all. */
  types?: ReadonlySet<string>
  /** Tables that readers see as views `read.<table>`; compared after a rebuild. */
  tables: string[]
  /** Other views for readers, by name in `read`: the select over the schema of a build. */
  views?: Readonly<Record<string, (schema: string) => string>>
  /** Tables that no event fills, which its views or rows refer to. */
  migrations?: Migrations[]
  /** SQL that sets what its triggers read in a transaction that applies events, which has the build's lock by then. */
  setting?: string
  /** Creates the tables with the keys that `apply` needs, unqualified: search_path is the build's own schema. */
  ddl: string
  /** Creates the indexes that only readers need; a rebuild makes them after its load. */
  indexes: string
  /**
   * Tables that `apply` writes the `event_id` of events to. An event that is found there is not applied again, so that
   * it cannot bring an old state back.
   */
  appliedIn: string[]
  /**
   * Reads what it needs, and returns what is to be written: that goes out together with the commit. What others of its
   * writes depend on it may write itself.
   */
  apply(tx: Tx, events: RecordedEvent[]): Promise<Part[]>
  /**
   * Whether the event is applied while nobody else applies any: what the handler reads for it, and then writes, events of
   * other partitions change too. All others are applied side by side by servers, and by the workers of a rebuild.
   */
  isExclusive(event: RecordedEvent): boolean
  /**
   * Takes out what is of erased sessions, in a projection that has rows by session. It reads the topic of `VisitorErased`
   * then. Events of erased sessions come to `apply` marked, in whatever order topics come: they must change no row but
   * what others depend on.
   */
  erase?(tx: Tx, erased: VisitorErased[]): Promise<void>
  /**
   * Ids of what the events change that processes keep in memory. Every process is notified of them together
   * with the offset. Absent = nothing.
   */
  subjectsOf?(events: RecordedEvent[]): string[]
  /** For one who deletes what has ended from a build, beside those who apply events. Absent = nothing ends. */
  createPrune?(): Prune
  /** By table. */
  comparedRows?: Readonly<Record<string, ComparedRows | 'not compared'>>
  /** Milliseconds to wait after a batch, so that the next is larger: for what nobody waits for. Absent = none. */
  gatherMs?: number
}

export const appliedRow = ({ meta }: RecordedEvent) => ({ event_id: meta.eventId })

/** Replaces the state of the id by what `step` makes of it; undefined = there is none yet. */
export function evolveIn<S>(
  states: Map<string, S>,
  id: string,
  step: (state: S | undefined) => S | undefined,
): void {
  const next = step(states.get(id))
  if (next) states.set(id, next)
}
