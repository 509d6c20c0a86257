import { ApiError } from '../../../infra/errors/errors.ts'
import { asId } from '../../../infra/ids.ts'
import type { ApiKeyRow } from '../../../projections/organizations/tables.ts'
import { organizationId } from '../../support/organization-rows.ts'

export { organization, organizationId } from '../../support/organization-rows.ts'

/** A secret key in use. */
export const secretKey: ApiKeyRow = {
  id: asId('key', `key_${'2'.repeat(26)}`),
  organization_id: organizationId,
  type: 'secret',
  environment: 'live',
  name: 'Server',
  client_target: 'browser',
  allowed_origins: null,
  scopes: ['sessions:read'],
  lookup_hash: 'hash',
  secret_hash_sealed: Buffer.from('sealed'),
  key_preview: 'sk_live_0000...0000',
  display_key: null,
  replaces_key_id: null,
  status: 'active',
  created_at: 1,
  rotated_at: null,
  revoked_at: null,
  grace_expires_at: null,
  revoked_reason: null,
  expires_at: null,
}

/** A publishable browser key in use. */
export const publishableKey: ApiKeyRow = {
  ...secretKey,
  id: asId('key', `key_${'3'.repeat(26)}`),
  type: 'publishable',
  name: 'Shop',
  allowed_origins: ['https://shop.example'],
  scopes: null,
  secret_hash_sealed: null,
  display_key: 'pk_live_0',
}

export const noKeys = { active: 0, secret: { live: 0, test: 0 } }

/** Returns the error that the work throws; fails if it does not throw. */
export function refusal(work: () => unknown): ApiError {
  try {
    work()
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  throw new Error('nothing was refused')
}
