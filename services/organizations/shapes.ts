import type { z } from 'zod'
import type { ApiKeyRow, OrganizationRow } from '../../projections/organizations/tables.ts'
import type { ClientTarget } from '../../schemas/events.ts'
import type { createKeyBody } from './schemas.ts'

type PublicTarget = NonNullable<z.output<typeof createKeyBody>['client_target']>

const publicTargets: Record<ClientTarget, PublicTarget> = {
  browser: 'browser',
  native_ios: 'native-ios',
  native_android: 'native-android',
}
const storedTargets: Record<PublicTarget, ClientTarget> = {
  browser: 'browser',
  'native-ios': 'native_ios',
  'native-android': 'native_android',
}

/** As events and rows call it. */
export const storedTarget = (target: PublicTarget): ClientTarget => storedTargets[target]

/** An organization as the API shows it. */
export function organizationJson({ id, name, slug, status, ...times }: OrganizationRow) {
  const created_at = iso(times.created_at)
  return { object: 'organization', id, name, slug, status, created_at, updated_at: iso(times.updated_at) }
}

interface Shown {
  /** Epoch milliseconds; undefined = never. */
  lastUsedAt?: number | undefined
  /** The whole key, in the answer that makes it. */
  revealedKey?: string
}

/** A key as the API shows it. */
export function apiKeyJson(key: ApiKeyRow, { lastUsedAt, revealedKey }: Shown) {
  return {
    object: 'api_key',
    id: key.id,
    type: key.type,
    environment: key.environment,
    name: key.name,
    status: key.status,
    client_target: publicTargets[key.client_target],
    allowed_origins: key.allowed_origins,
    scopes: key.scopes,
    rate_limit: null,
    key_preview: key.key_preview,
    ...(key.display_key !== null && { display_key: key.display_key }),
    ...(revealedKey !== undefined && { revealed_key: revealedKey }),
    last_used_at: isoOrNull(lastUsedAt ?? null),
    created_at: iso(key.created_at),
    rotated_at: isoOrNull(key.rotated_at),
    revoked_at: isoOrNull(key.revoked_at),
    grace_expires_at: isoOrNull(key.grace_expires_at),
  }
}

const iso = (at: number) => new Date(at).toISOString()
const isoOrNull = (at: number | null) => (at === null ? null : iso(at))
