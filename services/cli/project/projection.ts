import { z } from 'zod'
import { liveBuild } from '../../../infra/event-store/builds.ts'
import type { EventName } from '../../../infra/event-store/event.ts'
import { type RecordedEvent, sessionOf } from '../../../infra/event-store/event.ts'
import type { EndedData, Projection } from '../../../infra/event-store/projection.ts'
import type { FindEnded } from '../../../infra/event-store/prune.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import {
  closedFacts,
  type SessionFacts,
  sessionFacts,
} from '../../../projections/sessions/facts.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { keyColumns, quotedNames, readRows, viewTableOf } from './rows.ts'
import type { Change, View, ViewEvent } from './view.ts'
import { thrownIn, ViewFailed } from './view-failed.ts'

// Of views by session, beside the events that they name: what takes rows out, and when sessions were last decided.
const ending: EventName[] = ['VisitorErased', 'OrganizationDataExpired', 'SessionScored']
// Gate's sessions are never decided, and no time of theirs ends.
const endingOfGate: EventName[] = ['VisitorErased']

/** The view as a read model whose bookkeeping is in a schema of its own. `file` is for what is said of its errors. */
export function projectionOf(view: View, file: string): Projection {
  const { session } = view
  const types = new Set<EventName>([...view.events, ...endingOf(view)])
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
    ddl: [...tables.map((name) => ddlOf(view, name)), ownTables].join(';\n'),
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
      createPrune: () => (tx, ended) => prune(tx, { view, session, ended }),
    }),
  }
}

function endingOf({ session, events }: View): EventName[] {
  if (!session) return []
  return events.every((type) => eventTopics[type] === eventTopics.GateSessionOpened)
    ? endingOfGate
    : ending
}

// The times say when what is of a session ends: that of its newest decision counts.
const ownTables = `create table own_events (event_id text collate "C" primary key);
  create table own_sessions (session_id text collate "C" primary key, organization_id text not null,
    evaluated_at bigint not null);
  create table own_ended (organization_id text collate "C" primary key, before bigint not null);
  create index on own_sessions (organization_id, evaluated_at)`

function ddlOf({ tables }: View, name: string): string {
  const { columns, key } = viewTableOf(tables, name)
  const lines = Object.entries(columns).map(([column, type]) => `"${column}" ${type}`)
  return `create table "${name}" (${[...lines, `primary key (${quotedNames(key)})`].join(', ')})`
}

async function applyEvents(
  tx: Tx,
  { view, file, events }: { view: View; file: string; events: RecordedEvent[] },
): Promise<void> {
  const handledTypes = new Set<string>(view.events)
  // Whoever is erased is nothing to a view, in whatever order topics come.
  const handled = events.filter((event) => handledTypes.has(event.type) && !event.isErased)
  const all = handled.map((event) => ({ event, changes: changesOf(view, file, event) }))
  const [only, ...others] = handled
  // The events of a batch are tried one by one then, so that the one at fault is named.
  const naming = (error: unknown): never => {
    throw only && others.length === 0 && error instanceof ViewFailed ? named(error, only) : error
  }
  const changed = all.flatMap(({ changes }) => changes)
  const rows = await readRows(tx, view.tables, changed).catch(naming)
  for (const { event, changes } of all)
    for (const change of changes) {
      const row = ofEvent(event, () => change.to(rows.get(change)), file)
      ofEvent(event, () => check(view, event, { change, row }), file)
      rows.set(change, row)
    }
  await rows.write(tx).catch(naming)
  // Of the others a repeat changes nothing.
  await tx.query('insert into own_events select unnest($1::text[]) on conflict do nothing', [
    handled.map(({ meta }) => meta.eventId),
  ])
  if (view.session) await noteEnds(tx, events)
}

const changeShape = z.array(
  z.object({
    table: z.string(),
    key: z.record(z.string(), z.unknown()),
    to: z.custom<Change['to']>((value) => typeof value === 'function'),
  }),
)

function changesOf(view: View, file: string, event: RecordedEvent): Change[] {
  return ofEvent(
    event,
    () => {
      const parsed = changeShape.safeParse(view.handle(eventOf(event)))
      if (!parsed.success)
        throw new ViewFailed('the handler must return a list of { table, key, to }')
      for (const { table, key } of parsed.data)
        if (
          !keyColumns(view.tables, table).every(
            (one) => key[one] !== undefined && key[one] !== null,
          )
        )
          throw new ViewFailed(
            `a key of the table ${table} lacks one of ${keyColumns(view.tables, table).join(', ')}`,
          )
      return parsed.data
    },
    file,
  )
}

function check(
  view: View,
  event: RecordedEvent,
  { change, row }: { change: Change; row: unknown },
): void {
  if (row === null) return
  if (typeof row !== 'object' || row instanceof Promise)
    throw new ViewFailed(`what "to" returns for ${change.table} is no row`)
  const written: Record<string, unknown> = { ...row, ...change.key }
  const { columns } = viewTableOf(view.tables, change.table)
  const other = Object.keys(written).find((one) => !(one in columns))
  if (other !== undefined)
    throw new ViewFailed(`a row of the table ${change.table} has columns that it has not`)
  if (view.session && written[view.session] !== sessionOf(event))
    throw new ViewFailed(
      `${change.table}.${view.session} must be the session of the event, so that it can be erased`,
    )
}

function ofEvent<T>(event: RecordedEvent, work: () => T, file: string): T {
  try {
    return work()
  } catch (error) {
    throw named(thrownIn(file, error), event)
  }
}

const named = ({ message }: ViewFailed, { meta }: RecordedEvent) =>
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
  return unreadable === undefined ? sessionFacts(data) : closedFacts(data)
}

async function noteEnds(tx: Tx, events: RecordedEvent[]): Promise<void> {
  const decided = events.flatMap(({ type, data, isErased }) =>
    type === 'SessionScored' && !isErased ? [data] : [],
  )
  await tx.query(
    `insert into own_sessions select session_id, organization_id, max(evaluated_at)
     from unnest($1::text[], $2::text[], $3::bigint[]) as e (session_id, organization_id, evaluated_at) group by 1, 2
     on conflict (session_id) do update set evaluated_at = greatest(own_sessions.evaluated_at, excluded.evaluated_at)`,
    [
      decided.map((one) => one.session_id),
      decided.map((one) => one.organization_id),
      decided.map((one) => one.evaluated_at),
    ],
  )
  for (const { type, data } of events) {
    // Rows may have what a decision says, so they go with the later of the two.
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
  const some = times.filter((time) => time !== null)
  return some.length > 0 ? Math.max(...some) : null
}

interface Deleting {
  view: View
  session: string
}

async function deleteSessions(
  tx: Tx,
  { view, session, ids }: Deleting & { ids: string[] },
): Promise<void> {
  for (const table of Object.keys(view.tables))
    await tx.query(`delete from "${table}" where "${session}" = any($1::text[])`, [ids])
  await tx.query('delete from own_sessions where session_id = any($1::text[])', [ids])
}

async function prune(
  tx: Tx,
  { ended, ...deleting }: Deleting & { ended: EndedData[] },
): Promise<boolean> {
  const { rows } = await tx.query<{ id: string }>(
    `select session_id as id from own_sessions s
       join unnest($1::text[], $2::bigint[]) as e (organization_id, before) using (organization_id)
     where s.evaluated_at < e.before limit 1000 for update of s skip locked`,
    [ended.map((one) => one.organization_id), ended.map(({ sessions_before }) => sessions_before)],
  )
  if (rows.length > 0) await deleteSessions(tx, { ...deleting, ids: rows.map(({ id }) => id) })
  return rows.length > 0
}

/** What the events that the view has read say has ended. */
export function endedIn({ name, home }: Projection): FindEnded {
  return async (db) => {
    const live = await liveBuild(db, name, home)
    if (!live) return []
    const { rows } = await db.query<{ organization_id: string; sessions_before: number }>(
      `select organization_id, before::float8 as sessions_before from ${live.schema}.own_ended`,
    )
    const others = { decisions_before: null, visitors_before: null, webhooks_before: null }
    return rows.map((row) => ({ ...row, ...others }))
  }
}
