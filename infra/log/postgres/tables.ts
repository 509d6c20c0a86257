import type pg from 'pg'
import { z } from 'zod'
import { type Migrations, runMigrations } from '../../postgres/migrations.ts'
import { transaction } from '../../postgres/pool.ts'
import { LogUnavailable, type Topic, type TopicSpec } from '../port.ts'

// The tables of the embedded log. Offsets of a partition are assigned under its row lock in `partitions`, held until
// the transaction ends. So they have no gaps and become visible in order, and a reader can't miss a record.
const ddl = (schema: string) => `
create table ${schema}.identity (
  only_one boolean primary key default true check (only_one),
  id uuid not null default gen_random_uuid()
);
insert into ${schema}.identity default values;
create table ${schema}.topics (
  topic text primary key,
  id smallint generated always as identity unique,
  partitions integer not null,
  retention_ms bigint
);
create table ${schema}.partitions (
  topic text not null references ${schema}.topics,
  partition integer not null,
  next_offset bigint not null default 0,
  primary key (topic, partition)
) with (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
create table ${schema}.records (
  topic text not null,
  partition integer not null,
  "offset" bigint not null,
  key text not null,
  headers json not null,
  value bytea not null,
  stored_at bigint not null,
  primary key (topic, partition, "offset")
);
-- Values are deflated already: compressing them again only costs time.
alter table ${schema}.records alter column value set storage external;
-- Most fit on a page. Each that is stored apart costs two more writes and two more reads.
alter table ${schema}.records set (toast_tuple_target = 8160);
create table ${schema}.group_offsets (
  group_name text not null,
  topic text not null,
  partition integer not null,
  next_offset bigint not null,
  primary key (group_name, topic, partition)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
${appendFunction(schema)}
${refuseFunction(schema)}`

// Appends a batch in one round trip. The first three arrays have an element per partition, the others one per record:
// the index of its partition in those arrays (from 1), its index within that partition (from 0), and its content.
// Returns the time of the records (epoch milliseconds), then each partition's first offset.
const appendFunction = (schema: string) => `
create function ${schema}.append_records(
  part_topics text[], part_numbers integer[], part_counts integer[],
  parts integer[], places integer[], keys text[], headers text[], record_values bytea[]
) returns bigint[] language plpgsql as $$
declare
  bases bigint[];
  now_ms bigint := extract(epoch from clock_timestamp()) * 1000;
begin
  -- Two that lock the same rows in different orders would wait for each other. The update locks a single row.
  if cardinality(part_topics) > 1 then
    perform 1 from ${schema}.partitions p
      join unnest(part_topics, part_numbers) as w(topic, partition) using (topic, partition)
      order by p.topic, p.partition for update of p;
  end if;
  with moved as (
    update ${schema}.partitions p set next_offset = p.next_offset + w.count
    from unnest(part_topics, part_numbers, part_counts) with ordinality as w(topic, partition, count, place)
    where p.topic = w.topic and p.partition = w.partition
    returning w.place, p.next_offset - w.count as base
  ) select array_agg(base order by place) into bases from moved;
  if coalesce(cardinality(bases), 0) <> cardinality(part_topics) then
    raise exception 'unknown topic or partition';
  end if;
  insert into ${schema}.records (topic, partition, "offset", key, headers, value, stored_at)
    select part_topics[r.part], part_numbers[r.part], bases[r.part] + r.place, r.key, r.headers::json, r.value, now_ms
    from unnest(parts, places, keys, headers, record_values) as r(part, place, key, headers, value);
  return now_ms || bases;
end $$;`

/** SQLSTATE of an append that a guard refused, in a class that Postgres itself doesn't use. */
export const guardRefusedCode = 'TG001'

// Aborts the calling statement, so that none of its writes take effect.
const refuseFunction = (schema: string) => `
create function ${schema}.refuse() returns bigint[] language plpgsql as $$
begin
  raise exception 'a guard refused the append' using errcode = '${guardRefusedCode}';
end $$;`

export async function createLogSchema(pool: pg.Pool, schema: string): Promise<void> {
  if (!/^[a-z_][a-z0-9_]*$/.test(schema)) throw new Error(`not a schema name: ${schema}`)
  const migrations: Migrations = { name: 'log', schema, create: ddl(schema) }
  await transaction(pool, (tx) => runMigrations(tx, [migrations]))
}

export interface TopicInfo {
  topic: Topic
  id: number
  partitions: number
}

const rowsOf = z.array(z.object({ topic: z.string(), id: z.number(), partitions: z.number() }))

/** Creates a cache of topics. A topic's partition count never changes: its keys would move to other partitions. */
export function createTopicCache(pool: pg.Pool, schema: string) {
  const cache = new Map<Topic, TopicInfo>()

  async function find(topic: Topic): Promise<TopicInfo> {
    const info = cache.get(topic) ?? (await load(topic))
    if (!info) throw new Error(`topic ${topic} does not exist`)
    return info
  }

  async function load(topic: Topic): Promise<TopicInfo | undefined> {
    const text = `select topic, id, partitions from ${schema}.topics where topic = $1`
    const { rows } = await pool.query(text, [topic]).catch((cause) => {
      throw new LogUnavailable('cannot read the log', { cause })
    })
    const [info] = rowsOf.parse(rows)
    if (info) cache.set(topic, info)
    return info
  }

  /** Creates the topic. An existing one keeps its partition count and gets the new retention. */
  async function ensure({ topic, partitions, retentionMs }: TopicSpec): Promise<void> {
    // `where not exists` because `on conflict` alone would use up one of the 32,767 ids on each call.
    await pool.query(
      `insert into ${schema}.topics (topic, partitions)
       select $1, $2 where not exists (select from ${schema}.topics where topic = $1) on conflict do nothing`,
      [topic, partitions],
    )
    await pool.query(`update ${schema}.topics set retention_ms = $2 where topic = $1`, [
      topic,
      retentionMs ?? null,
    ])
    await pool.query(
      `insert into ${schema}.partitions (topic, partition)
       select topic, generate_series(0, partitions - 1) from ${schema}.topics where topic = $1
       on conflict do nothing`,
      [topic],
    )
    await find(topic)
  }

  return { find, ensure, getCached: (topic: Topic) => cache.get(topic) }
}
