import { z } from 'zod'
import { findLiveBuild } from '../../../infra/event-store/builds.ts'
import type { EventName } from '../../../infra/event-store/event.ts'
import { type RecordedEvent, sessionOf } from '../../../infra/event-store/event.ts'
import type { Projection, RetentionCutoffs } from '../../../infra/event-store/projection.ts'
import type { FindCutoffs } from '../../../infra/event-store/prune.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import {
  plaintextDecisionFacts,
  type SessionFacts,
  sessionFacts,
} from '../../../projections/sessions/facts.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { keyColumns, quotedNames, readRows, requireViewTable } from './rows.ts'
import type { Change, View, ViewEvent } from './view.ts'
import { handlerFailure, ViewFailed } from './view-failed.ts'

// A view with a session column also reads these: erasures and expirations delete rows, and the time of a session's newest
// decision determines when it expires.
const retentionEvents: EventName[] = ['VisitorErased', 'OrganizationDataExpired', 'SessionScored']
// Gate sessions have no decisions and do not expire.
const gateRetentionEvents: EventName[] = ['VisitorErased']

/** Returns the view as a projection in its own schemas. `file` is used to find the line of handler errors. */
export function projectionOf(view: View, file: string): Projection {
  const { session } = view
  const types = new Set<EventName>([...view.events, ...retentionEventsOf(view)])
  const tables = Object.keys(view.tables)
  const home = `view_${view.name}`
  return {
    name: home,
    home,
    version: view.version,
    topics: [...new Set([...types].map((type) => eventTopics[type]))],
    types,
    tables,
    views: Object.fromEntries(
      Object.entries(view.views).map(([name, select]) => [name, () => select]),
    ),
    ddl: [...tables.map((name) => ddlOf(view, name)), bookkeepingDdl].join(';\n'),
    indexes: session
      ? tables.map((name) => `create index on "${name}" ("${session}")`).join(';\n')
      : '',
    appliedIn: ['own_events'],
    isExclusive: () => false,
    async apply(tx, events) {
      await applyEvents(tx, { view, file, events })
      return []
    },
    ...(session && {
      erase: (tx, erased) =>
        deleteSessions(tx, {
          view,
          session,
          ids: erased.flatMap(({ session_ids }) => session_ids),
        }),
      createPrune: () => (tx, cutoffs) => prune(tx, { view, session, cutoffs }),
    }),
  }
}

function retentionEventsOf({ session, events }: View): EventName[] {
  if (!session) return []
  return events.every((type) => eventTopics[type] === eventTopics.GateSessionOpened)
    ? gateRetentionEvents
    : retentionEvents
}

// own_events: applied events. own_sessions: time of each session's newest decision. own_ended: retention cutoffs.
const bookkeepingDdl = `create table own_events (event_id text collate "C" primary key);
  create table own_sessions (session_id text collate "C" primary key, organization_id text not null,
    evaluated_at bigint not null);
  create table own_ended (organization_id text collate "C" primary key, before bigint not null);
  create index on own_sessions (organization_id, evaluated_at)`

function ddlOf({ tables }: View, name: string): string {
  const { columns, key } = requireViewTable(tables, name)
  const lines = Object.entries(columns).map(([column, type]) => `"${column}" ${type}`)
  return `create table "${name}" (${[...lines, `primary key (${quotedNames(key)})`].join(', ')})`
}

async function applyEvents(
  tx: Tx,
  { view, file, events }: { view: View; file: string; events: RecordedEvent[] },
): Promise<void> {
  const handledTypes = new Set<string>(view.events)
  // Topics are read in any order, so the events of erased people can come after the erasure.
  const handled = events.filter((event) => handledTypes.has(event.type) && !event.isErased)
  const changesByEvent = handled.map((event) => ({ event, changes: changesOf(view, file, event) }))
  const [first, ...others] = handled
  // After a failure, the runner retries the events one by one, so only a batch of one names its event.
  const rethrow = (error: unknown): never => {
    throw first && others.length === 0 && error instanceof ViewFailed
      ? withEventId(error, first)
      : error
  }
  const keys = changesByEvent.flatMap(({ changes }) => changes)
  const rows = await readRows(tx, view.tables, keys).catch(rethrow)
  for (const { event, changes } of changesByEvent)
    for (const change of changes) {
      const row = runForEvent(event, () => change.to(rows.get(change)), file)
      runForEvent(event, () => checkRow(view, event, { change, row }), file)
      rows.set(change, row)
    }
  await rows.write(tx).catch(rethrow)
  // Stores only handled events: applying another one twice changes nothing.
  await tx.query('insert into own_events select unnest($1::text[]) on conflict do nothing', [
    handled.map(({ meta }) => meta.eventId),
  ])
  if (view.session) await recordRetention(tx, events)
}

const changesSchema = z.array(
  z.object({
    table: z.string(),
    key: z.record(z.string(), z.unknown()),
    to: z.custom<Change['to']>((value) => typeof value === 'function'),
  }),
)

function changesOf(view: View, file: string, event: RecordedEvent): Change[] {
  return runForEvent(
    event,
    () => {
      const parsed = changesSchema.safeParse(view.handle(eventOf(event)))
      if (!parsed.success)
        throw new ViewFailed('the handler must return a list of { table, key, to }')
      for (const { table, key } of parsed.data)
        if (
          !keyColumns(view.tables, table).every(
            (column) => key[column] !== undefined && key[column] !== null,
          )
        )
          throw new ViewFailed(
            `each key of the table ${table} must have ${keyColumns(view.tables, table).join(', ')}`,
          )
      return parsed.data
    },
    file,
  )
}

function checkRow(
  view: View,
  event: RecordedEvent,
  { change, row }: { change: Change; row: unknown },
): void {
  if (row === null) return
  if (typeof row !== 'object' || row instanceof Promise)
    throw new ViewFailed(`"to" must return a row for ${change.table}, or null`)
  const written: Record<string, unknown> = { ...row, ...change.key }
  const { columns } = requireViewTable(view.tables, change.table)
  if (Object.keys(written).some((column) => !(column in columns)))
    throw new ViewFailed(`a row has columns that the table ${change.table} does not have`)
  if (view.session && written[view.session] !== sessionOf(event))
    throw new ViewFailed(
      `${change.table}.${view.session} must be the session of the event, so that it can be erased`,
    )
}

function runForEvent<T>(event: RecordedEvent, work: () => T, file: string): T {
  try {
    return work()
  } catch (error) {
    throw withEventId(handlerFailure(file, error), event)
  }
}

const withEventId = ({ message }: ViewFailed, { meta }: RecordedEvent) =>
  new ViewFailed(`${message}, event ${meta.eventId}`)

function eventOf(event: RecordedEvent): ViewEvent {
  const { type, data, meta } = event
  return {
    type,
    data: { ...data },
    id: meta.eventId,
    time: meta.time,
    organization_id: meta.organizationId,
    environment: meta.environment,
    facts: factsOf(event),
  }
}

function factsOf({ type, data, unreadable }: RecordedEvent): SessionFacts | null {
  if (type !== 'SessionScored') return null
  return unreadable === undefined ? sessionFacts(data) : plaintextDecisionFacts(data)
}

async function recordRetention(tx: Tx, events: RecordedEvent[]): Promise<void> {
  const decisions = events.flatMap(({ type, data, isErased }) =>
    type === 'SessionScored' && !isErased ? [data] : [],
  )
  await tx.query(
    `insert into own_sessions select session_id, organization_id, max(evaluated_at)
     from unnest($1::text[], $2::text[], $3::bigint[]) as e (session_id, organization_id, evaluated_at) group by 1, 2
     on conflict (session_id) do update set evaluated_at = greatest(own_sessions.evaluated_at, excluded.evaluated_at)`,
    [
      decisions.map(({ session_id }) => session_id),
      decisions.map(({ organization_id }) => organization_id),
      decisions.map(({ evaluated_at }) => evaluated_at),
    ],
  )
  for (const { type, data } of events) {
    // Rows can contain data of sessions and of decisions, so the later of the two cutoffs applies.
    const before =
      type === 'OrganizationDataExpired'
        ? latest(data.sessions_before, data.decisions_before)
        : null
    if (type === 'OrganizationDataExpired' && before !== null)
      await tx.query(
        `insert into own_ended values ($1, $2) on conflict (organization_id) do update
         set before = greatest(own_ended.before, excluded.before)`,
        [data.organization_id, before],
      )
  }
}

function latest(...times: (number | null)[]): number | null {
  const presentTimes = times.filter((time) => time !== null)
  return presentTimes.length > 0 ? Math.max(...presentTimes) : null
}

interface SessionTables {
  view: View
  session: string
}

async function deleteSessions(
  tx: Tx,
  { view, session, ids }: SessionTables & { ids: string[] },
): Promise<void> {
  for (const table of Object.keys(view.tables))
    await tx.query(`delete from "${table}" where "${session}" = any($1::text[])`, [ids])
  await tx.query('delete from own_sessions where session_id = any($1::text[])', [ids])
}

async function prune(
  tx: Tx,
  { cutoffs, ...tables }: SessionTables & { cutoffs: RetentionCutoffs[] },
): Promise<boolean> {
  const { rows } = await tx.query<{ id: string }>(
    `select session_id as id from own_sessions s
       join unnest($1::text[], $2::bigint[]) as e (organization_id, before) using (organization_id)
     where s.evaluated_at < e.before limit 1000 for update of s skip locked`,
    [
      cutoffs.map(({ organization_id }) => organization_id),
      cutoffs.map(({ sessions_before }) => sessions_before),
    ],
  )
  if (rows.length > 0) await deleteSessions(tx, { ...tables, ids: rows.map(({ id }) => id) })
  return rows.length > 0
}

/** Returns a function that reads the retention cutoffs in the events that the view has applied. */
export function createFindCutoffs({ name, home }: Projection): FindCutoffs {
  return async (db) => {
    const live = await findLiveBuild(db, name, home)
    if (!live) return []
    const { rows } = await db.query<{ organization_id: string; sessions_before: number }>(
      `select organization_id, before::float8 as sessions_before from ${live.schema}.own_ended`,
    )
    const unused = { decisions_before: null, visitors_before: null, webhooks_before: null }
    return rows.map((row) => ({ ...row, ...unused }))
  }
}
