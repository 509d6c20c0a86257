import type { KeyRecord } from '../../infra/access/principal.ts'
import { bucketIdOf } from '../../infra/access/rate-limit/limiter.ts'
import { asId, type ConsoleSessionId, type KeyId, type OrganizationId } from '../../infra/ids.ts'
import { ddlOf, type Migrations } from '../../infra/postgres/migrations.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import {
  column,
  constrained,
  nullable,
  primaryKey,
  type RowOf,
  table,
} from '../../infra/postgres/table.ts'
import { keyEndOf } from '../../projections/organizations/queries.ts'
import {
  apiKeys,
  type OrganizationRow,
  organizations,
} from '../../projections/organizations/tables.ts'
import type { Environment } from '../../schemas/events.ts'
import {
  type ConsoleRole,
  type ConsoleSession,
  maxIdleMs,
  maxSessionMs,
  sessionRetentionMs,
} from './decide.ts'

// Console sessions and login codes are not event-sourced, so that names can be deleted and the event log has no tokens.
// If they are lost, people sign in again. Tokens and codes are stored hashed. A session has either a role or a key.

const ownerColumns = {
  organization_id: column.id<OrganizationId>(),
  name: column.text(),
  environments: column.textArray<Environment>(),
}

const sessions = table(
  'tidegate.console_sessions',
  {
    id: primaryKey(column.id<ConsoleSessionId>()),
    token_hash: constrained(column.id(), 'unique'),
    ...ownerColumns,
    role: nullable(column.text<ConsoleRole>()),
    key_id: nullable(column.id<KeyId>()),
    created_at: column.bigint(),
    last_used_at: column.bigint(),
    ended_at: nullable(column.bigint()),
  },
  { indexes: ['(created_at)'] },
)

const codes = table('tidegate.console_codes', {
  code_hash: primaryKey(column.id()),
  ...ownerColumns,
  role: column.text<ConsoleRole>(),
  expires_at: column.bigint(),
  used_at: nullable(column.bigint()),
})

export const consoleMigrations: Migrations = { name: 'console', create: ddlOf(sessions, codes) }

export interface LoginLink {
  organizationId: OrganizationId
  name: string
  environments: readonly Environment[]
  role: ConsoleRole
}

export async function storeCode(
  db: Db,
  { hash, expiresAt, ...link }: LoginLink & { hash: string; expiresAt: number },
): Promise<void> {
  const { organizationId, name, environments, role } = link
  await db.query('insert into tidegate.console_codes values ($1, $2, $3, $4, $5, $6)', [
    hash,
    organizationId,
    name,
    environments,
    role,
    expiresAt,
  ])
}

export interface NewSession {
  id: ConsoleSessionId
  tokenHash: string
  now: number
}

/** Marks the code as used and stores a session, atomically. Returns false if the code is unknown, used or expired. */
export async function redeemCode(
  db: Db,
  { hashes, id, tokenHash, now }: NewSession & { hashes: string[] },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `with code as (update tidegate.console_codes set used_at = $4
       where code_hash = any($1) and used_at is null and expires_at > $4 returning *)
     insert into tidegate.console_sessions (${sessions.names})
     select $2, $3, organization_id, name, environments, role, null, $4, $4, null from code`,
    [hashes, id, tokenHash, now],
  )
  return rowCount === 1
}

/** Stores a session with the name, environment and permissions of a secret key. */
export async function storeKeySession(
  db: Db,
  { keyId, id, tokenHash, now }: NewSession & { keyId: string },
): Promise<void> {
  await db.query(
    `insert into tidegate.console_sessions (${sessions.names})
     select $2, $3, organization_id, name, array[environment], null, key_id, $4, $4, null
     from read.api_keys where key_id = $1`,
    [keyId, id, tokenHash, now],
  )
}

type SessionRow = Omit<RowOf<typeof sessions>, 'token_hash'>

interface CurrentSessionRow extends SessionRow, Pick<OrganizationRow, 'capabilities'> {
  organization_name: string
  organization_status: KeyRecord['organizationStatus']
  /** The key's columns are null for a session with a role. */
  key_status: KeyRecord['status'] | null
  grace_expires_at: number | null
  expires_at: number | null
  scopes: string[] | null
}

/** Returns the session with the current state of its organization and key, so that a suspension applies at once. */
export async function findConsoleSession(
  db: Db,
  tokenHashes: string[],
): Promise<ConsoleSession | undefined> {
  const { rows } = await db.query<CurrentSessionRow>({
    name: 'console-session',
    text: `select ${sessions.selectWithout('s', 'token_hash')}, ${organizations.select('o', 'capabilities')},
        o.name as organization_name, o.status as organization_status, k.status as key_status,
        ${apiKeys.select('k', 'grace_expires_at', 'expires_at', 'scopes')}
      from tidegate.console_sessions s join read.organizations o using (organization_id)
        left join read.api_keys k using (key_id) where s.token_hash = any($1)`,
    values: [tokenHashes],
  })
  return rows[0] && sessionOf(rows[0])
}

function sessionOf(row: CurrentSessionRow): ConsoleSession {
  const { id, name, environments } = row
  return {
    id,
    name,
    environments,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    endedAt: row.ended_at,
    rights: row.role
      ? { role: row.role }
      : {
          keyId: asId('key', row.key_id ?? ''),
          scopes: row.scopes ?? [],
          status: row.key_status ?? 'revoked',
          endsAt: keyEndOf(row),
        },
    organization: {
      id: row.organization_id,
      name: row.organization_name,
      status: row.organization_status,
      capabilities: row.capabilities,
    },
  }
}

const maxListedSessions = 200

/** Returns open sessions within the caller's organization and environments, the last used first. */
export async function listOpenSessions(
  db: Db,
  { organization, environments }: ConsoleSession,
  now: number,
): Promise<SessionRow[]> {
  const { rows } = await db.query<SessionRow>(
    `select ${sessions.selectWithout('s', 'token_hash')} from tidegate.console_sessions s
     where s.organization_id = $1 and s.environments <@ $2 and s.ended_at is null
       and s.created_at > $3::bigint - $4 and s.last_used_at > $3::bigint - $5
     order by s.last_used_at desc, s.id limit ${maxListedSessions}`,
    [organization.id, environments, now, maxSessionMs, maxIdleMs],
  )
  return rows
}

/** Ends an open session within the caller's organization and environments. Returns false if there is none. */
export async function endSession(
  db: Db,
  { organization, environments }: ConsoleSession,
  { id, now }: { id: string; now: number },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `update tidegate.console_sessions set ended_at = $4
     where id = $1 and organization_id = $2 and environments <@ $3 and ended_at is null`,
    [id, organization.id, environments, now],
  )
  return rowCount === 1
}

export async function touchSession(
  db: Db,
  { id, now }: { id: string; now: number },
): Promise<void> {
  await db.query(
    'update tidegate.console_sessions set last_used_at = greatest(last_used_at, $2) where id = $1',
    [id, now],
  )
}

/** Revokes all sessions of the same key, or of the same person (name and organization). */
export async function revokeAllForUser(
  db: Db,
  { organization, name, rights }: ConsoleSession,
  { now }: { now: number },
): Promise<void> {
  const keyId = 'keyId' in rights ? rights.keyId : null
  await db.query(
    `update tidegate.console_sessions set ended_at = $4
     where ended_at is null and organization_id = $1
       and key_id is not distinct from $2 and ($2 is not null or name = $3)`,
    [organization.id, keyId, name, now],
  )
}

/**
 * Revokes sessions whose organization is inactive or whose key is revoked. They stay revoked if the organization is
 * reactivated.
 */
export async function revokeOrphaned(db: Db, now: number): Promise<void> {
  await db.query(
    `update tidegate.console_sessions s set ended_at = $1 where ended_at is null and (
       not exists (select from read.organizations o
         where o.organization_id = s.organization_id and o.status = 'active')
       or s.key_id is not null and not exists (select from read.api_keys k
         where k.key_id = s.key_id and k.status <> 'revoked'))`,
    [now],
  )
}

/** Deletes expired login codes, and old sessions with their rate limits. Returns the number of sessions. */
export async function purgeConsoleSessions(db: Db, now: number): Promise<number> {
  await db.query('delete from tidegate.console_codes where expires_at <= $1', [now])
  const { rows } = await db.query<{ id: ConsoleSessionId }>(
    'delete from tidegate.console_sessions where created_at <= $1 returning id',
    [now - sessionRetentionMs],
  )
  const buckets = rows.map(({ id }) => bucketIdOf(id, 'person'))
  await db.query('delete from tidegate.rate_limits where bucket = any($1)', [buckets])
  return rows.length
}
