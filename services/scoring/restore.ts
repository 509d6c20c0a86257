import type pg from 'pg'
import { z } from 'zod'
import type { EventCodec, RecordedEvent } from '../../infra/event-store/codec.ts'
import { decodeRecords } from '../../infra/event-store/consumer.ts'
import type { Skips } from '../../infra/event-store/skips.ts'
import type { Batch, EventLog, Position } from '../../infra/log/port.ts'
import { readTopicToEnd } from '../../infra/log/read-topic.ts'
import { type Column, type Part, runTogether, unnest } from '../../infra/postgres/arrays.ts'
import { lockKey, type Tx, transaction } from '../../infra/postgres/pool.ts'
import { eventTopics, type VisitorLinked } from '../../schemas/events.ts'
import { readOffset } from './store.ts'
import { allKeys, linkedProfile, type Profile, visitorKeysOf } from './visitors/profile.ts'

export interface VisitorSources {
  pool: pg.Pool
  log: EventLog
  codec: EventCodec
  skips?: Pick<Skips, 'has'> | undefined
}

export interface RebuiltVisitors {
  sessions: number
  visitors: number
  keys: number
  /** Rows of visitors and of their keys that are not the same in the tables and on the log. */
  differences: number
  switched: boolean
}

/**
 * Makes scoring's visitors anew from the log, where they are kept for ever, and replaces its own when both
 * are equal or differences are accepted. Scoring goes on meanwhile, and waits for the last part.
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
 * Where scoring has never read anything, as after a loss of the database: makes its visitors from the log before it
 * begins. undefined = it has begun already.
 */
export function restoreVisitors(sources: VisitorSources): Promise<RebuiltVisitors | undefined> {
  return transaction(sources.pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [lockKey('restore visitors')])
    const { rowCount } = await tx.query('select from scoring.offsets limit 1')
    if (rowCount) return undefined
    const read = await readVisitors(tx, sources)
    await putVisitors(tx)
    for (const place of await sources.log.endPositions(eventTopics.BatchReceived)) await readOffset(tx, place)
    return { ...read, switched: true }
  })
}

async function readVisitors(tx: Tx, sources: VisitorSources): Promise<Omit<RebuiltVisitors, 'switched'>> {
  await tx.query(temporaryTables)
  const ends: Position[] = []
  for (const topic of topics) ends.push(...(await readLinks(tx, sources, { topic, from: [] })))
  // Whoever scores locks a row of it first.
  await tx.query('lock table scoring.offsets in exclusive mode')
  for (const topic of topics) await readLinks(tx, sources, { topic, from: ends })
  await tx.query(gathering)
  const { rows } = await tx.query(comparison)
  return counts.parse(rows)[0]
}

// In this order: what a decision says of its visitor is less, and all that there is of sessions of earlier versions.
const topics = [eventTopics.VisitorLinked, eventTopics.SessionScored] as const
type LinkTopic = (typeof topics)[number]

async function putVisitors(tx: Tx): Promise<void> {
  await tx.query(`delete from scoring.visitor_keys; delete from scoring.visitors;
    insert into scoring.visitors (${visitorColumns}) select ${visitorColumns} from rebuilt_visitors;
    insert into scoring.visitor_keys (key, visitor_id) select key, visitor_id from rebuilt_visitor_keys`)
}

const counts = z.tuple([
  z.object({ sessions: z.number(), visitors: z.number(), keys: z.number(), differences: z.number() }),
])

const visitorColumns =
  'visitor_id, organization_id, environment, first_seen_at, last_seen_at, sessions, profile'

// By session: scoring may have tried more than once to link it, and then the last try is what it knows.
const temporaryTables = `create temporary table rebuilt_links (
    session_id text primary key, visitor_id text not null, organization_id text not null, environment text not null,
    linked_at bigint not null, profile text, keys text not null
  ) on commit drop`

const gathering = `create temporary table rebuilt_visitors on commit drop as
    select visitor_id, min(organization_id) as organization_id, min(environment) as environment,
      min(linked_at) as first_seen_at, max(linked_at) as last_seen_at, count(*)::integer as sessions,
      coalesce((array_agg(profile order by linked_at desc, session_id desc) filter (where profile is not null))[1],
        'null') as profile
    from rebuilt_links group by visitor_id;
  create temporary table rebuilt_visitor_keys on commit drop as
    select distinct decode(key, 'hex') as key, visitor_id
    from rebuilt_links cross join string_to_table(nullif(keys, ''), ',') key`

const comparison = `select (select count(*) from rebuilt_links)::float8 as sessions,
    (select count(*) from rebuilt_visitors)::float8 as visitors,
    (select count(*) from rebuilt_visitor_keys)::float8 as keys,
    ((select count(*) from (
        select ${visitorColumns} from scoring.visitors except select ${visitorColumns} from rebuilt_visitors) gone)
      + (select count(*) from (
        select ${visitorColumns} from rebuilt_visitors except select ${visitorColumns} from scoring.visitors) found)
      + (select count(*) from (
        select key, visitor_id from scoring.visitor_keys
        except select key, visitor_id from rebuilt_visitor_keys) gone_keys)
      + (select count(*) from (
        select key, visitor_id from rebuilt_visitor_keys
        except select key, visitor_id from scoring.visitor_keys) found_keys))::float8 as differences`

interface Stretch {
  topic: LinkTopic
  from: Position[]
}

async function readLinks(tx: Tx, sources: VisitorSources, { topic, from }: Stretch): Promise<Position[]> {
  const startOf = (partition: number) =>
    from.find((at) => at.topic === topic && at.partition === partition)?.offset ?? 0
  return readTopicToEnd({
    ...{ log: sources.log, topic, from: startOf },
    async handle(batches) {
      const found = (await readEvents(sources, batches)).flatMap(linksOf)
      const links = [...new Map(found.map((link) => [link.session_id, link])).values()]
      await runTogether(tx, putLinks(topic, links))
    },
  })
}

async function readEvents(sources: VisitorSources, batches: Batch[]): Promise<RecordedEvent[]> {
  const decoded = await Promise.all(batches.map(({ records }) => decodeRecords(sources, records)))
  return decoded.flatMap(({ events, end, poison }, i) => {
    if (!poison) return events
    const { topic, partition } = batches[i] ?? {}
    throw new Error(`${topic}/${partition} offset ${end} cannot be read`, { cause: poison.error })
  })
}

type Link = Pick<
  VisitorLinked,
  'session_id' | 'visitor_id' | 'organization_id' | 'environment' | 'linked_at'
> & { profile: string | null; keys: string }

function linksOf({ type, data }: RecordedEvent): Link[] {
  if (type === 'VisitorLinked') return [linkOf(data, linkedProfile(data))]
  if (type !== 'SessionScored' || !data.visitor) return []
  const { id: visitor_id, identified_at: linked_at, continuity_id } = data.visitor
  return [linkOf({ ...data, visitor_id, linked_at, continuity_id, presented_continuity_ids: [] }, null)]
}

type Told = Pick<VisitorLinked, 'continuity_id' | 'presented_continuity_ids' | 'install_id'> &
  Omit<Link, 'profile' | 'keys'>

function linkOf(told: Told, profile: Profile | null): Link {
  const { presented_continuity_ids: presented, continuity_id: issued, install_id: install } = told
  const keys = allKeys(visitorKeysOf({ ...told, presented, issued, install }, profile))
  return { ...told, profile: profile && JSON.stringify(profile), keys: keys.join() }
}

const linkColumns: Column<Link>[] = [
  { name: 'session_id', type: 'text', of: ({ session_id }) => session_id },
  { name: 'visitor_id', type: 'text', of: ({ visitor_id }) => visitor_id },
  { name: 'organization_id', type: 'text', of: ({ organization_id }) => organization_id },
  { name: 'environment', type: 'text', of: ({ environment }) => environment },
  { name: 'linked_at', type: 'bigint', of: ({ linked_at }) => linked_at },
  { name: 'profile', type: 'text', of: ({ profile }) => profile },
  { name: 'keys', type: 'text', of: ({ keys }) => keys },
]

const replaced = linkColumns.map(({ name }) => `${name} = excluded.${name}`).join(', ')
const whereKnown = {
  [eventTopics.VisitorLinked]: `on conflict (session_id) do update set ${replaced}`,
  [eventTopics.SessionScored]: 'on conflict do nothing',
}

function putLinks(topic: LinkTopic, links: Link[]): Part[] {
  if (links.length === 0) return []
  const at = (first: number) => {
    const { names, source, values } = unnest(linkColumns, links, first)
    const text = `insert into rebuilt_links (${names}) select * from ${source} ${whereKnown[topic]}`
    return { text, values }
  }
  return [{ as: topic === eventTopics.VisitorLinked ? 'put_links' : 'put_decisions', at }]
}
