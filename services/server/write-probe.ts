import type { NewRecord, TopicSpec } from '../../infra/log/port.ts'
import type { Migrations } from '../../infra/postgres/migrations.ts'

export const probeTopic = 'tidegate.probe.v1'
/** Topic of records that test whether the log accepts writes. They are never read. */
export const probeTopicSpec: TopicSpec = {
  topic: probeTopic,
  partitions: 1,
  retentionMs: 60 * 60 * 1000,
}

export const probeMigrations: Migrations = {
  name: 'write-probe',
  create: `create table tidegate.write_probe (
    only_one boolean primary key default true check (only_one),
    written_at timestamptz not null default now()
  ) with (fillfactor = 10)`,
}

export const probeRecord: NewRecord = {
  topic: probeTopic,
  key: 'probe',
  value: Buffer.alloc(0),
  headers: {},
}

export const writeProbeSql = `
insert into tidegate.write_probe default values
on conflict (only_one) do update set written_at = excluded.written_at`
