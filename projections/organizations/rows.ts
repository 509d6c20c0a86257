import type { ClientTarget, Environment, KeyType } from '../../schemas/events.ts'

export type OrganizationStatus = 'active' | 'suspended' | 'deleted'

/** Times are epoch milliseconds. */
export interface OrganizationRow {
  id: string
  name: string
  slug: string
  status: OrganizationStatus
  /** Units in 60 seconds of the bucket that all its secret keys share; null = the server's default. */
  secret_limit: number | null
  publishable_limit: number | null
  /** What it may use that is off by default. */
  capabilities: readonly string[]
  created_at: number
  updated_at: number
}

export interface ApiKeyRow {
  id: string
  organization_id: string
  type: KeyType
  environment: Environment
  name: string
  client_target: ClientTarget
  /** null for secret keys. */
  allowed_origins: string[] | null
  /** null for publishable keys. */
  scopes: string[] | null
  lookup_hash: string
  secret_hash_sealed: Buffer | null
  key_preview: string
  display_key: string | null
  replaces_key_id: string | null
  status: 'active' | 'rotating' | 'revoked'
  created_at: number
  rotated_at: number | null
  revoked_at: number | null
  /** A rotating key stops working here. */
  grace_expires_at: number | null
}
