import type { KeyPrincipal, KeyRecord } from '../../infra/access/principal.ts'
import { asId, type KeyId } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { Environment } from '../../schemas/events.ts'
import {
  type ApiKeyRow,
  apiKeys,
  type OrganizationRow,
  type OrganizationStatus,
  organizations,
} from './tables.ts'

export async function findOrganization(
  db: Db,
  organizationId: string,
): Promise<OrganizationRow | undefined> {
  return findBy(db, 'o.organization_id = $1', organizationId)
}

export async function findOrganizationBySlug(
  db: Db,
  slug: string,
): Promise<OrganizationRow | undefined> {
  return findBy(db, 'o.slug = $1', slug)
}

export async function listOrganizations(db: Db): Promise<OrganizationRow[]> {
  const { rows } = await db.query<OrganizationRow>(
    `select ${organizations.select('o')} from read.organizations o order by o.created_at desc, o.organization_id desc`,
  )
  return rows
}

export async function organizationStatuses(
  db: Db,
  organizationIds: string[],
): Promise<Map<string, OrganizationStatus>> {
  const { rows } = await db.query<{ id: string; status: OrganizationStatus }>({
    name: 'organization-statuses',
    text: `select organization_id as id, status from read.organizations where organization_id = any($1)`,
    values: [organizationIds],
  })
  return new Map(rows.map(({ id, status }) => [id, status]))
}

async function findBy(db: Db, where: string, value: string): Promise<OrganizationRow | undefined> {
  const { rows } = await db.query<OrganizationRow>(
    `select ${organizations.select('o')} from read.organizations o where ${where}
     order by o.created_at, o.organization_id limit 1`,
    [value],
  )
  return rows[0]
}

/** Finds the key with any of the hashes, even if it is revoked or its organization is inactive. */
export async function findKeyByLookupHash(
  db: Db,
  hashes: string[],
): Promise<KeyRecord | undefined> {
  const { rows } = await db.query<KeyWithOrganization>({
    name: 'find-key',
    text: `select ${apiKeys.select('k')}, o.status as organization_status,
        ${organizations.select('o', 'capabilities')},
        coalesce(p.shortens_addresses, false) as shortens_addresses,
        (case k.type when 'secret' then o.secret_limit else o.publishable_limit end)::float8 as rate_limit,
        case k.type when 'secret' then array(
          select distinct jsonb_array_elements_text(p.allowed_origins::jsonb) from read.api_keys p
          where p.organization_id = k.organization_id and p.environment = k.environment
            and p.type = 'publishable' and p.status <> 'revoked' order by 1
        ) else '{}' end as origins
      from read.api_keys k join read.organizations o using (organization_id)
        left join read.data_policies p using (organization_id) where k.lookup_hash = any($1)`,
    values: [hashes],
  })
  const [key] = rows
  if (!key) return undefined
  const { status, organization_status: organizationStatus } = key
  return { principal: principalOf(key), status, endsAt: keyEndOf(key), organizationStatus }
}

/** Returns the earlier time; null = never. */
export const earlierOf = (a: number | null, b: number | null): number | null =>
  a === null || b === null ? (a ?? b) : Math.min(a, b)

/** Returns when the key stops working: the earlier of its expiry and its grace period's end; null if it has neither. */
export const keyEndOf = (key: Pick<ApiKeyRow, 'expires_at' | 'grace_expires_at'>): number | null =>
  earlierOf(key.expires_at, key.grace_expires_at)

interface KeyWithOrganization extends ApiKeyRow, Pick<OrganizationRow, 'capabilities'> {
  organization_status: OrganizationRow['status']
  shortens_addresses: boolean
  rate_limit: number | null
  origins: string[]
}

function principalOf(key: KeyWithOrganization): KeyPrincipal {
  const base = {
    keyId: asId('key', key.id),
    organizationId: asId('org', key.organization_id),
    environment: key.environment,
    rateLimit: key.rate_limit,
  }
  if (key.type === 'secret') {
    const { scopes, capabilities, origins } = key
    return { ...base, type: 'secret', scopes: scopes ?? [], capabilities, origins }
  }
  const {
    client_target: clientTarget,
    allowed_origins,
    shortens_addresses: shortensAddresses,
  } = key
  const allowedOrigins = allowed_origins ?? []
  return { ...base, type: 'publishable', clientTarget, allowedOrigins, shortensAddresses }
}

/** Secret key to which sealed tokens of its organization and environment are encrypted. */
export interface RecipientKey {
  keyId: KeyId
  secretHashSealed: Buffer
}

/** Returns the secret keys that are usable at `now`, newest first. */
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
        and status <> 'revoked' and coalesce(least(grace_expires_at, expires_at) > $3, true)
      order by created_at desc, key_id desc`,
    values: [organizationId, environment, now],
  })
  return rows.map(({ id, sealed }) => ({ keyId: asId('key', id), secretHashSealed: sealed }))
}

/** Returns the oldest and the newest secret key across all organizations, even if revoked. */
export async function oldestAndNewestSecretKeys(db: Db): Promise<RecipientKey[]> {
  const outermost = (order: 'asc' | 'desc') => `(select key_id as id, secret_hash_sealed as sealed
    from read.api_keys where secret_hash_sealed is not null order by created_at ${order} limit 1)`
  const { rows } = await db.query<{ id: string; sealed: Buffer }>(
    `${outermost('asc')} union all ${outermost('desc')}`,
  )
  return rows.map(({ id, sealed }) => ({ keyId: asId('key', id), secretHashSealed: sealed }))
}

/** Returns the active publishable keys that have not expired at `now`, newest first. */
export async function activePublishableKeys(
  db: Db,
  organizationId: string,
  environment: Environment,
  now = Date.now(),
): Promise<ApiKeyRow[]> {
  const { rows } = await db.query<ApiKeyRow>(
    `select ${apiKeys.select('k')} from read.api_keys k
     where k.organization_id = $1 and k.environment = $2 and k.type = 'publishable' and k.status = 'active'
       and coalesce(k.expires_at > $3, true)
     order by k.created_at desc, k.key_id desc`,
    [organizationId, environment, now],
  )
  return rows
}

export interface KeyCounts {
  active: number
  secret: Record<Environment, number>
}

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

export async function findKey(
  db: Db,
  organizationId: string,
  keyId: string,
): Promise<ApiKeyRow | undefined> {
  const { rows } = await db.query<ApiKeyRow>(
    `select ${apiKeys.select('k')} from read.api_keys k where k.organization_id = $1 and k.key_id = $2`,
    [organizationId, keyId],
  )
  return rows[0]
}

export interface ListKeys {
  limit: number
  after?: { createdAt: number; id: string } | undefined
}

export async function listKeys(
  db: Db,
  organizationId: string,
  { limit, after }: ListKeys,
): Promise<{ rows: ApiKeyRow[]; hasMore: boolean }> {
  const values: unknown[] = [organizationId, limit + 1]
  if (after) values.push(after.createdAt, after.id)
  const { rows } = await db.query<ApiKeyRow>(
    `select ${apiKeys.select('k')} from read.api_keys k
     where k.organization_id = $1 ${after ? 'and (k.created_at, k.key_id) < ($3, $4)' : ''}
     order by k.created_at desc, k.key_id desc limit $2`,
    values,
  )
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit }
}

/** Finds keys whose expiry or grace period is over, the oldest first. */
export async function findEndedKeys(
  db: Db,
  { now, limit }: { now: number; limit: number },
): Promise<{ organizationId: string; keyId: string }[]> {
  const { rows } = await db.query<{ organizationId: string; keyId: string }>(
    `select organization_id as "organizationId", key_id as "keyId" from read.api_keys
     where status <> 'revoked' and least(grace_expires_at, expires_at) <= $1
     order by least(grace_expires_at, expires_at), key_id limit $2`,
    [now, limit],
  )
  return rows
}

const weekMs = 7 * 24 * 60 * 60 * 1000

/**
 * Finds the usable keys that expire within a week, or within half of their lifetime if that is shorter. Leaves out keys
 * that end before, because they were rotated.
 */
export async function findExpiringKeys(db: Db, now: number): Promise<ApiKeyRow[]> {
  const { rows } = await db.query<ApiKeyRow>(
    `select ${apiKeys.select('k')} from read.api_keys k join read.organizations o using (organization_id)
     where k.status <> 'revoked' and o.status = 'active' and coalesce(k.grace_expires_at >= k.expires_at, true)
       and k.expires_at > $1 and k.expires_at <= $1 + $2
       and k.expires_at - least($2, (k.expires_at - k.created_at) / 2) <= $1
     order by k.expires_at, k.key_id`,
    [now, weekMs],
  )
  return rows
}
