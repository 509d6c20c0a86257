import { ensureTables } from '../../../infra/postgres/ensure-tables.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'

/**
 * What Gate remembers beside the log. Without a row of gate_pages the consent page is reloaded; without one of
 * gate_leases an approval is resumed; gate_limits are full again. gate_vault holds the only copies of the keys that
 * deliveries are encrypted under: to delete a row is to delete what was to be delivered, in the log too.
 */
const ddl = `
create table if not exists tidegate.gate_vault (
  gate_session_id text collate "C" primary key,
  data_key_sealed bytea not null,
  created_at bigint not null
);
create index if not exists gate_vault_created_at on tidegate.gate_vault (created_at);
create table if not exists tidegate.gate_pages (
  gate_session_id text collate "C" primary key,
  approve_token_hash text not null,
  issued_at bigint not null,
  closed_at bigint
);
create index if not exists gate_pages_closed_at on tidegate.gate_pages (closed_at) where closed_at is not null;
create index if not exists gate_pages_issued_at on tidegate.gate_pages (issued_at);
create table if not exists tidegate.gate_leases (
  gate_session_id text collate "C" primary key,
  holder text not null,
  leased_until bigint not null
);
create unlogged table if not exists tidegate.gate_limits (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
);
create index if not exists gate_limits_expire on tidegate.gate_limits (expire);
`

/** Creates what is missing; safe to run from several processes at once. */
export function createGateTables(tx: Tx): Promise<void> {
  return ensureTables(tx, { name: 'gate', table: 'tidegate.gate_vault', ddl })
}
