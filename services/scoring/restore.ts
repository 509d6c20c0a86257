import type pg from 'pg'
import { z } from 'zod'
import { isErasure } from '../../infra/event-store/erased.ts'
import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { type EventSource, readEvents } from '../../infra/event-store/read-events.ts'
import type { Position } from '../../infra/log/port.ts'
import { type Part, runTogether } from '../../infra/postgres/arrays.ts'
import { lockKey, type Tx, transaction } from '../../infra/postgres/pool.ts'
import { replacing, writeRows } from '../../infra/postgres/table.ts'
import { isReassignment } from '../../projections/sessions/apply-reassignments.ts'
import {
  eventTopics,
  type OrganizationDataExpired,
  type VisitorLinked,
} from '../../schemas/events.ts'
import { attestedDevices, deviceIn, type KnownDevice } from './attestation/tables.ts'
import { readOffset } from './store.ts'
import { allKeys, linkedProfile, storageKeyOf, visitorKeysOf } from './visitors/keys.ts'
import { gatheredKeys, gatheredVisitors, ruleOf } from './visitors/links.ts'
import type { Profile } from './visitors/profile.ts'
import {
  deleteEndedVisitors,
  type EndedVisitors,
  endedVisitors,
  pruneDevices,
} from './visitors/prune.ts'
import { knownVisitors, type Link, links as linkTable, visitorKeys } from './visitors/tables.ts'

export interface VisitorSources extends EventSource {
  pool: pg.Pool
}

export interface RebuiltVisitors {
  sessions: number
  visitors: number
  keys: number
  /** Rows of visitors and of their keys that differ between the tables and the log. */
  differences: number
  switched: boolean
}

/**
 * Makes scoring's visitors anew from the log, which has them for ever, and replaces its own when both are equal or
 * differences are accepted. Scoring goes on meanwhile, and waits for the last part.
 */
export function rebuildVisitors(
  sources: VisitorSources,
  { acceptDifferences }: { acceptDifferences: boolean },
): Promise<RebuiltVisitors> {
  return transaction(sources.pool, async (tx) => {
    const read = await readVisitors(tx, sources)
    const switched = read.differences === 0 || acceptDifferences
    if (switched) await putVisitors(tx)
    return { ...read, switched }
  })
}

/**
 * Makes scoring's visitors from the log before it begins, where it has never read anything, as after a loss of the
 * database. undefined = there is nothing to do.
 */
export function restoreVisitors(sources: VisitorSources): Promise<RebuiltVisitors | undefined> {
  return transaction(sources.pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [lockKey('restore visitors')])
    const { rowCount } = await tx.query('select from scoring.offsets limit 1')
    if (rowCount !== 0) return undefined
    const read = await readVisitors(tx, sources)
    await putVisitors(tx)
    // Not at 0: a partition whose records have all expired would stay behind its end for ever.
    for (const first of await sources.log.firstPositions(eventTopics.BatchReceived))
      await readOffset(tx, first, first.offset)
    return { ...read, switched: true }
  })
}

async function readVisitors(
  tx: Tx,
  sources: VisitorSources,
): Promise<Omit<RebuiltVisitors, 'switched'>> {
  await tx.query(temporaryTables)
  const ends: Position[] = []
  for (const topic of topics) ends.push(...(await readLinks(tx, sources, { topic, from: [] })))
  // Whoever scores locks a row of it first.
  await tx.query('lock table scoring.offsets in exclusive mode')
  for (const topic of topics) await readLinks(tx, sources, { topic, from: ends })
  await tx.query(gathering)
  const ended = await readEnded(sources)
  for (const tables of [rebuiltTables, ownTables]) await deleteEndedVisitors(tx, ended, tables)
  await pruneDevices(tx, ended, 'rebuilt_devices')
  const { rows } = await tx.query(comparison)
  return counts.parse(rows)[0]
}

// Their records have links, later reassignments of these, and erasures.
const topics = [
  eventTopics.VisitorLinked,
  eventTopics.SessionScored,
  eventTopics.VisitorErased,
] as const
async function putVisitors(tx: Tx): Promise<void> {
  await tx.query(`delete from scoring.visitor_keys; delete from scoring.visitors; delete from scoring.links;
    insert into scoring.links select * from rebuilt_links;
    insert into scoring.visitors (${knownVisitors.names}) select * from rebuilt_visitors;
    insert into scoring.visitor_keys (${visitorKeys.names}) select * from rebuilt_visitor_keys;
    delete from scoring.attested_devices;
    insert into scoring.attested_devices (${attestedDevices.names}) select ${attestedDevices.names} from rebuilt_devices`)
}

const counts = z.tuple([
  z.object({
    sessions: z.number(),
    visitors: z.number(),
    keys: z.number(),
    differences: z.number(),
  }),
])

// The key is the session, because scoring may have linked it more than once, and knows the last link.
const temporaryTables = `create temporary table rebuilt_links (like scoring.links, primary key (session_id)) on commit drop;
  create temporary table rebuilt_reassignments (
    session_id text primary key, visitor_id text not null, apart_from text, merged_at bigint
  ) on commit drop;
  create temporary table rebuilt_devices (like scoring.attested_devices, primary key (device_id)) on commit drop;
  create temporary table rebuilt_erased (session_id text primary key) on commit drop`

const gathering = `delete from rebuilt_links where session_id in (select session_id from rebuilt_erased);
  delete from rebuilt_devices where session_id in (select session_id from rebuilt_erased);
  update rebuilt_links l
    set visitor_id = m.visitor_id, apart_from = m.apart_from, merged_at = m.merged_at from rebuilt_reassignments m
    where m.session_id = l.session_id;
  create index on rebuilt_links (visitor_id);
  create temporary table rebuilt_visitors on commit drop as ${gatheredVisitors('rebuilt_links')};
  create temporary table rebuilt_visitor_keys on commit drop as ${gatheredKeys('rebuilt_links')}`

const comparison = `select (select count(*) from rebuilt_links)::float8 as sessions,
    (select count(*) from rebuilt_visitors)::float8 as visitors,
    (select count(*) from rebuilt_visitor_keys)::float8 as keys,
    ((select count(*) from (
        select ${knownVisitors.names} from scoring.visitors except select * from rebuilt_visitors) gone)
      + (select count(*) from (
        select * from rebuilt_visitors except select ${knownVisitors.names} from scoring.visitors) found)
      + (select count(*) from (
        select ${visitorKeys.names} from scoring.visitor_keys except select * from rebuilt_visitor_keys) gone_keys)
      + (select count(*) from (
        select * from rebuilt_visitor_keys except select ${visitorKeys.names} from scoring.visitor_keys) found_keys))::float8 as differences`

const rebuiltTables = {
  visitors: 'rebuilt_visitors',
  keys: 'rebuilt_visitor_keys',
  links: 'rebuilt_links',
}
const ownTables = {
  visitors: 'scoring.visitors',
  keys: 'scoring.visitor_keys',
  links: 'scoring.links',
}

// From the log, as all else here: a read model may not be filled yet.
async function readEnded(sources: VisitorSources): Promise<EndedVisitors> {
  const found: OrganizationDataExpired[] = []
  await readEvents(sources, {
    topic: eventTopics.OrganizationDataExpired,
    handle(events) {
      for (const { type, data } of events) if (type === 'OrganizationDataExpired') found.push(data)
    },
  })
  return endedVisitors(found)
}

async function readLinks(
  tx: Tx,
  sources: VisitorSources,
  { topic, from }: { topic: (typeof topics)[number]; from: Position[] },
): Promise<Position[]> {
  const startOf = (partition: number) =>
    from.find((at) => at.topic === topic && at.partition === partition)?.offset ?? 0
  return readEvents(sources, {
    topic,
    from: startOf,
    async handle(events) {
      const links = new Map(events.flatMap(linksOf).map((link) => [link.session_id, link]))
      await runTogether(tx, [
        ...putLinks([...links.values()]),
        ...putDevices(events.flatMap(devicesOf)),
      ])
      await putReassignments(tx, events)
      await noteErased(tx, events)
      // A transaction that says nothing for long is ended.
      if (links.size === 0) await tx.query('select')
    },
  })
}

// A session's reassignments are in one partition, so the last one counts.
async function putReassignments(tx: Tx, events: RecordedEvent[]): Promise<void> {
  const newest = new Map(events.filter(isReassignment).map(({ data }) => [data.session_id, data]))
  const written = writeRows(
    { name: 'rebuilt_reassignments', key: linkTable.key },
    {
      as: 'put_reassignments',
      columns: reassignmentColumns,
      conflict: replacing({ ...linkTable, columns: reassignmentColumns }),
      rows: [...newest.values()].map((one) => ({ ...one, ...ruleOf(one) })),
    },
  )
  await runTogether(tx, written)
}

const reassignmentColumns = linkTable.columnsOf(
  'session_id',
  'visitor_id',
  'apart_from',
  'merged_at',
)

async function noteErased(tx: Tx, events: RecordedEvent[]): Promise<void> {
  const erased = events.filter(isErasure).flatMap(({ data }) => data.session_ids)
  if (erased.length > 0)
    await tx.query('insert into rebuilt_erased select unnest($1::text[]) on conflict do nothing', [
      erased,
    ])
}

function linksOf({ type, data }: RecordedEvent): Link[] {
  return type === 'VisitorLinked' ? [linkOf(data, linkedProfile(data))] : []
}

function linkOf(linked: VisitorLinked, profile: Profile | null): Link {
  const { session_id, visitor_id, organization_id, environment, linked_at } = linked
  const { presented_continuity_ids: presented, continuity_id: issued, install_id: install } = linked
  const keys = visitorKeysOf({ organization_id, environment, presented, issued, install }, profile)
  return {
    session_id,
    visitor_id,
    organization_id,
    environment,
    linked_at,
    storage_key: storageKeyOf(keys) ?? session_id,
    profile,
    keys: allKeys(keys),
    apart_from: null,
    merged_at: null,
  }
}

const devicesOf = ({ type, data }: RecordedEvent): KnownDevice[] =>
  type === 'SessionScored' ? [deviceIn(data) ?? []].flat() : []

// Decisions come by partition, and the one counts that saw the most.
function putDevices(devices: KnownDevice[]): Part[] {
  const inOrder = devices.toSorted((one, other) => one.last_seen_at - other.last_seen_at)
  const newest = new Map(inOrder.map((device) => [device.id, device]))
  const { columns } = attestedDevices
  return writeRows(
    { name: 'rebuilt_devices as known', key: attestedDevices.key },
    {
      as: 'put_devices',
      columns,
      rows: [...newest.values()],
      conflict: `${replacing(attestedDevices)} where excluded.last_seen_at >= known.last_seen_at`,
    },
  )
}

function putLinks(rows: Link[]): Part[] {
  const { key, columns } = linkTable
  const conflict = replacing(linkTable)
  return writeRows({ name: 'rebuilt_links', key }, { as: 'put_links', columns, rows, conflict })
}
