import type pg from 'pg'
import { z } from 'zod'
import { isErasure } from '../../infra/event-store/erasures.ts'
import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { type EventSource, readEvents } from '../../infra/event-store/read-events.ts'
import type { Position } from '../../infra/log/port.ts'
import { type Cte, runAsOneStatement } from '../../infra/postgres/arrays.ts'
import { lockKey, type Tx, transaction } from '../../infra/postgres/pool.ts'
import { overwrite, writeRows } from '../../infra/postgres/table.ts'
import { isReassignment } from '../../projections/sessions/apply-reassignments.ts'
import {
  eventTopics,
  type OrganizationDataExpired,
  type VisitorLinked,
} from '../../schemas/events.ts'
import { attestedDeviceOf, attestedDevices, type StoredDevice } from './attestation/tables.ts'
import { pauseScoring } from './erase.ts'
import { ensureOffset } from './store.ts'
import { allKeys, profileFromEvent, storageKeyOf, visitorKeysOf } from './visitors/keys.ts'
import { keysFromLinksSql, reassignmentRuleOf, visitorsFromLinksSql } from './visitors/links.ts'
import type { Profile } from './visitors/profile.ts'
import {
  deleteExpiredVisitors,
  pruneDevices,
  type VisitorCutoffs,
  visitorCutoffs,
} from './visitors/prune.ts'
import { knownVisitors, type Link, links as linkTable, visitorKeys } from './visitors/tables.ts'

export interface VisitorSources extends EventSource {
  pool: pg.Pool
}

// Rebuilds scoring's visitors from the log: their links, keys and attested devices. The log is the source of truth, so
// the tables in the database can be lost. A rebuild reads the log into temporary tables while scoring runs, then blocks
// scoring, reads the rest, and compares and swaps within one transaction.

export interface RebuiltVisitors {
  sessions: number
  visitors: number
  keys: number
  /** Rows of visitors and their keys that differ between database and log. */
  differences: number
  /** True if the rebuilt rows replaced the stored ones. */
  switched: boolean
}

/** Rebuilds the visitors, and replaces the stored ones if nothing differs or differences are accepted. */
export function rebuildVisitors(
  sources: VisitorSources,
  { acceptDifferences }: { acceptDifferences: boolean },
): Promise<RebuiltVisitors> {
  return transaction(sources.pool, async (tx) => {
    const read = await rebuildInTemporaryTables(tx, sources)
    const switched = read.differences === 0 || acceptDifferences
    if (switched) await replaceVisitors(tx)
    return { ...read, switched }
  })
}

/**
 * Rebuilds the visitors if scoring has never read anything, as after the loss of the database. Returns undefined if
 * there is nothing to do.
 */
export function restoreVisitors(sources: VisitorSources): Promise<RebuiltVisitors | undefined> {
  return transaction(sources.pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [lockKey('restore visitors')])
    const { rowCount } = await tx.query('select from scoring.offsets limit 1')
    if (rowCount !== 0) return undefined
    const read = await rebuildInTemporaryTables(tx, sources)
    await replaceVisitors(tx)
    // Don't start at 0: a partition whose records have all expired would lag forever.
    for (const first of await sources.log.firstPositions(eventTopics.BatchReceived))
      await ensureOffset(tx, first, first.offset)
    return { ...read, switched: true }
  })
}

async function rebuildInTemporaryTables(
  tx: Tx,
  sources: VisitorSources,
): Promise<Omit<RebuiltVisitors, 'switched'>> {
  await tx.query(temporaryTables)
  const ends: Position[] = []
  for (const topic of topics) ends.push(...(await loadTopic(tx, sources, { topic, from: [] })))
  await pauseScoring(tx)
  for (const topic of topics) await loadTopic(tx, sources, { topic, from: ends })
  await tx.query(buildVisitors)
  const cutoffs = await readCutoffs(sources)
  for (const tables of [rebuiltTables, storedTables])
    await deleteExpiredVisitors(tx, cutoffs, tables)
  await pruneDevices(tx, cutoffs, 'rebuilt_devices')
  const { rows } = await tx.query(comparison)
  return comparisonResult.parse(rows)[0]
}

// Topics with links, reassignments, attested devices and erasures.
const topics = [
  eventTopics.VisitorLinked,
  eventTopics.SessionScored,
  eventTopics.VisitorErased,
] as const

async function replaceVisitors(tx: Tx): Promise<void> {
  await tx.query(`delete from scoring.visitor_keys; delete from scoring.visitors; delete from scoring.links;
    insert into scoring.links select * from rebuilt_links;
    insert into scoring.visitors (${knownVisitors.names}) select * from rebuilt_visitors;
    insert into scoring.visitor_keys (${visitorKeys.names}) select * from rebuilt_visitor_keys;
    delete from scoring.attested_devices;
    insert into scoring.attested_devices (${attestedDevices.names}) select ${attestedDevices.names} from rebuilt_devices`)
}

const comparisonResult = z.tuple([
  z.object({
    sessions: z.number(),
    visitors: z.number(),
    keys: z.number(),
    differences: z.number(),
  }),
])

// `session_id` is the key, because scoring may have linked a session more than once, and the last link counts.
const temporaryTables = `create temporary table rebuilt_links (like scoring.links, primary key (session_id)) on commit drop;
  create temporary table rebuilt_reassignments (
    session_id text primary key, visitor_id text not null, apart_from text, merged_at bigint
  ) on commit drop;
  create temporary table rebuilt_devices (like scoring.attested_devices, primary key (device_id)) on commit drop;
  create temporary table rebuilt_erased (session_id text primary key) on commit drop`

const buildVisitors = `delete from rebuilt_links where session_id in (select session_id from rebuilt_erased);
  delete from rebuilt_devices where session_id in (select session_id from rebuilt_erased);
  update rebuilt_links l
    set visitor_id = m.visitor_id, apart_from = m.apart_from, merged_at = m.merged_at from rebuilt_reassignments m
    where m.session_id = l.session_id;
  create index on rebuilt_links (visitor_id);
  create temporary table rebuilt_visitors on commit drop as ${visitorsFromLinksSql('rebuilt_links')};
  create temporary table rebuilt_visitor_keys on commit drop as ${keysFromLinksSql('rebuilt_links')}`

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
const storedTables = {
  visitors: 'scoring.visitors',
  keys: 'scoring.visitor_keys',
  links: 'scoring.links',
}

// Reads the log instead of the read model, which may not be filled yet.
async function readCutoffs(sources: VisitorSources): Promise<VisitorCutoffs> {
  const expired: OrganizationDataExpired[] = []
  await readEvents(sources, {
    topic: eventTopics.OrganizationDataExpired,
    handle(events) {
      for (const { type, data } of events)
        if (type === 'OrganizationDataExpired') expired.push(data)
    },
  })
  return visitorCutoffs(expired)
}

// Loads the topic's events into the temporary tables. Returns the end positions.
async function loadTopic(
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
      await runAsOneStatement(tx, [
        ...linkWrites([...links.values()]),
        ...deviceWrites(events.flatMap(devicesOf)),
      ])
      await writeReassignments(tx, events)
      await writeErased(tx, events)
      // Keep the transaction from hitting the idle timeout.
      if (links.size === 0) await tx.query('select')
    },
  })
}

// A session's reassignments are in one partition, so they are in order and the last one counts.
async function writeReassignments(tx: Tx, events: RecordedEvent[]): Promise<void> {
  const newest = new Map(events.filter(isReassignment).map(({ data }) => [data.session_id, data]))
  const written = writeRows(
    { name: 'rebuilt_reassignments', key: linkTable.key },
    {
      as: 'put_reassignments',
      columns: reassignmentColumns,
      conflict: overwrite({ ...linkTable, columns: reassignmentColumns }),
      rows: [...newest.values()].map((data) => ({ ...data, ...reassignmentRuleOf(data) })),
    },
  )
  await runAsOneStatement(tx, written)
}

const reassignmentColumns = linkTable.columnsOf(
  'session_id',
  'visitor_id',
  'apart_from',
  'merged_at',
)

async function writeErased(tx: Tx, events: RecordedEvent[]): Promise<void> {
  const erased = events.filter(isErasure).flatMap(({ data }) => data.session_ids)
  if (erased.length > 0)
    await tx.query('insert into rebuilt_erased select unnest($1::text[]) on conflict do nothing', [
      erased,
    ])
}

function linksOf({ type, data }: RecordedEvent): Link[] {
  return type === 'VisitorLinked' ? [linkOf(data, profileFromEvent(data))] : []
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

const devicesOf = ({ type, data }: RecordedEvent): StoredDevice[] =>
  type === 'SessionScored' ? [attestedDeviceOf(data) ?? []].flat() : []

// Keeps the latest state of each device, because partitions are read one after another.
function deviceWrites(devices: StoredDevice[]): Cte[] {
  const sorted = devices.toSorted((a, b) => a.last_seen_at - b.last_seen_at)
  const newest = new Map(sorted.map((device) => [device.id, device]))
  const { columns } = attestedDevices
  return writeRows(
    { name: 'rebuilt_devices as known', key: attestedDevices.key },
    {
      as: 'put_devices',
      columns,
      rows: [...newest.values()],
      conflict: `${overwrite(attestedDevices)} where excluded.last_seen_at >= known.last_seen_at`,
    },
  )
}

function linkWrites(rows: Link[]): Cte[] {
  const { key, columns } = linkTable
  const conflict = overwrite(linkTable)
  return writeRows({ name: 'rebuilt_links', key }, { as: 'put_links', columns, rows, conflict })
}
