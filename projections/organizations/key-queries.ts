import type { KeyRecord, Principal } from '../../infra/access/principal.ts'
import { asId, type KeyId } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { Environment } from '../../schemas/events.ts'
import { type ApiKeyRecord, keyFields, keyRow } from './records.ts'
import type { ApiKeyRow, OrganizationStatus } from './rows.ts'

/** The key stored under one of the look-up hashes, revoked ones too: the caller decides what its status means. */
export async function findKeyByLookupHash(db: Db, hashes: string[]): Promise<KeyRecord | undefined> {
  const { rows } = await db.query<ApiKeyRecord & OrganizationPart>({
    name: 'find-key',
    text: `select ${keyFields('k')}, o.status as organization_status, o.capabilities,
        (case k.type when 'secret' then o.secret_limit else o.publishable_limit end)::float8 as rate_limit
      from read.api_keys k join read.organizations o using (organization_id) where k.lookup_hash = any($1)`,
    values: [hashes],
  })
  const [record] = rows
  if (!record) return undefined
  const key = keyRow(record)
  return {
    principal: principalOf(key, record),
    status: key.status,
    graceExpiresAt: key.grace_expires_at,
    organizationStatus: record.organization_status,
  }
}

interface OrganizationPart {
  organization_status: OrganizationStatus
  capabilities: string
  rate_limit: number | null
}

function principalOf(key: ApiKeyRow, { capabilities, rate_limit }: OrganizationPart): Principal {
  const base = {
    keyId: asId('key', key.id),
    organizationId: asId('org', key.organization_id),
    environment: key.environment,
    rateLimit: rate_limit,
  }
  if (key.type === 'secret') {
    return { ...base, type: 'secret', scopes: key.scopes ?? [], capabilities: JSON.parse(capabilities) }
  }
  const { client_target: clientTarget, allowed_origins } = key
  return { ...base, type: 'publishable', clientTarget, allowedOrigins: allowed_origins ?? [] }
}

/** A secret key that a sealed token of its organization and environment must open with. */
export interface RecipientKey {
  keyId: KeyId
  secretHashSealed: Buffer
}

/**
 * The active secret keys and the rotating ones whose grace has not ended at `now` (epoch milliseconds), newest
 * first: a token has room for a limited number of recipients.
 */
export async function recipientKeys(
  db: Db,
  organizationId: string,
  environment: Environment,
  now = Date.now(),
): Promise<RecipientKey[]> {
  const { rows } = await db.query<{ id: string; sealed: Buffer }>({
    name: 'recipient-keys',
    text: `select key_id as id, secret_hash_sealed as sealed from read.api_keys
      where organization_id = $1 and environment = $2 and type = 'secret' and secret_hash_sealed is not null
        and (status = 'active' or (status = 'rotating' and grace_expires_at > $3))
      order by created_at desc, key_id desc`,
    values: [organizationId, environment, now],
  })
  return rows.map(({ id, sealed }) => ({ keyId: asId('key', id), secretHashSealed: sealed }))
}

/** The organization's active publishable keys of the environment, newest first. */
export async function activePublishableKeys(
  db: Db,
  organizationId: string,
  environment: Environment,
): Promise<ApiKeyRow[]> {
  const { rows } = await db.query<ApiKeyRecord>(
    `select ${keyFields('k')} from read.api_keys k
     where k.organization_id = $1 and k.environment = $2 and k.type = 'publishable' and k.status = 'active'
     order by k.created_at desc, k.key_id desc`,
    [organizationId, environment],
  )
  return rows.map(keyRow)
}

export interface KeyCounts {
  /** Active keys of the organization, of both types and environments. */
  active: number
  /** Active and rotating secret keys of the organization in each environment. */
  secret: Record<Environment, number>
}

/** How many keys an organization has, for the limits on them. */
export async function countKeys(db: Db, organizationId: string): Promise<KeyCounts> {
  const { rows } = await db.query<{ active: number; live: number; test: number }>(
    `select count(*) filter (where status = 'active')::int as active,
       count(*) filter (where type = 'secret' and environment = 'live' and status <> 'revoked')::int as live,
       count(*) filter (where type = 'secret' and environment = 'test' and status <> 'revoked')::int as test
     from read.api_keys where organization_id = $1`,
    [organizationId],
  )
  const { active, live, test } = rows[0] ?? { active: 0, live: 0, test: 0 }
  return { active, secret: { live, test } }
}

/** The organization's key; undefined when it has none of that id. */
export async function findKey(db: Db, organizationId: string, keyId: string): Promise<ApiKeyRow | undefined> {
  const { rows } = await db.query<ApiKeyRecord>(
    `select ${keyFields('k')} from read.api_keys k where k.organization_id = $1 and k.key_id = $2`,
    [organizationId, keyId],
  )
  return rows[0] && keyRow(rows[0])
}

export interface ListKeys {
  /** Rows at most. */
  limit: number
  /** The last row of the page before. */
  after?: { createdAt: number; id: string } | undefined
}

/** The organization's keys, revoked ones too, newest first. */
export async function listKeys(
  db: Db,
  organizationId: string,
  { limit, after }: ListKeys,
): Promise<{ rows: ApiKeyRow[]; hasMore: boolean }> {
  const values: unknown[] = [organizationId, limit + 1]
  if (after) values.push(after.createdAt, after.id)
  const { rows } = await db.query<ApiKeyRecord>(
    `select ${keyFields('k')} from read.api_keys k
     where k.organization_id = $1 ${after ? 'and (k.created_at, k.key_id) < ($3, $4)' : ''}
     order by k.created_at desc, k.key_id desc limit $2`,
    values,
  )
  return { rows: rows.slice(0, limit).map(keyRow), hasMore: rows.length > limit }
}

/** A rotating key whose grace is over. */
export interface EndedGrace {
  organizationId: string
  keyId: string
}

/** Up to `limit` rotating keys whose grace has ended at `now` (epoch milliseconds), longest ago first. */
export async function endedGraces(
  db: Db,
  { now, limit }: { now: number; limit: number },
): Promise<EndedGrace[]> {
  const { rows } = await db.query<EndedGrace>(
    `select organization_id as "organizationId", key_id as "keyId" from read.api_keys
     where status = 'rotating' and grace_expires_at <= $1 order by grace_expires_at, key_id limit $2`,
    [now, limit],
  )
  return rows
}
