import { ensureTables } from '../../infra/postgres/ensure-tables.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { linksDdl } from './visitors/links.ts'

// Scoring's own memory, a view of the collect topic like any read model. `offsets` guards it: state, visitors and
// the offset that produced them are committed together.
const ddl = `
create schema if not exists scoring;
create table if not exists scoring.offsets (
  topic text not null,
  partition int not null,
  next_offset bigint not null,
  log_time bigint not null default 0,
  primary key (topic, partition)
);
create table if not exists scoring.sessions (
  session_id text primary key,
  organization_id text not null,
  environment text not null,
  opened_at bigint not null,
  last_activity_at bigint not null,
  final_at bigint,
  idled_at bigint,
  partition int,
  state text not null
);
alter table scoring.offsets add column if not exists log_time bigint not null default 0;
alter table scoring.sessions add column if not exists partition int;
alter table scoring.sessions add column if not exists constants text;
-- A state is written with nearly each event: it stays on its page as it is. What seldom changes is put apart.
alter table scoring.sessions alter column state set storage main, alter column constants set storage external,
  set (toast_tuple_target = 4080);
create index if not exists sessions_open on scoring.sessions (last_activity_at) where final_at is null;
create index if not exists sessions_opened on scoring.sessions (opened_at);
create table if not exists scoring.visitors (
  visitor_id text primary key,
  organization_id text not null,
  environment text not null,
  first_seen_at bigint not null,
  last_seen_at bigint not null,
  sessions int not null,
  profile text not null
);
alter table scoring.visitors add column if not exists lineage text;
alter table scoring.visitors add column if not exists apart_from text;
create table if not exists ${linksDdl('scoring.links')};
create index if not exists links_visitor on scoring.links (visitor_id);
create table if not exists scoring.visitor_keys (
  key bytea not null,
  visitor_id text not null,
  primary key (key, visitor_id)
);
create index if not exists visitor_keys_of on scoring.visitor_keys (visitor_id);
`

export function createScoringTables(tx: Tx): Promise<void> {
  return ensureTables(tx, { name: 'scoring', table: 'scoring.sessions', ddl })
}
