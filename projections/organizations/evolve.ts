import type { DomainEvent } from '../../infra/event-store/event.ts'
import type { ApiKeyIssued, OrganizationCreated } from '../../schemas/events.ts'
import type { ApiKeyRow, OrganizationRow, OrganizationStatus } from './tables.ts'

export function evolveOrganization(
  state: OrganizationRow | undefined,
  event: DomainEvent,
): OrganizationRow | undefined {
  if (event.type === 'OrganizationCreated') return state ?? newOrganization(event.data)
  if (!state) return undefined
  switch (event.type) {
    case 'OrganizationRenamed':
      return { ...state, name: event.data.name, updated_at: event.data.renamed_at }
    case 'OrganizationSuspended':
      return withStatus(state, 'suspended', event.data.suspended_at)
    case 'OrganizationDeleted':
      return withStatus(state, 'deleted', event.data.deleted_at)
    case 'OrganizationReactivated':
      return withStatus(state, 'active', event.data.reactivated_at)
    case 'OrganizationLimitsChanged': {
      const { secret_limit, publishable_limit, max_key_days } = event.data
      return { ...state, secret_limit, publishable_limit, max_key_days }
    }
    case 'OrganizationCapabilityEnabled':
      return {
        ...state,
        capabilities: [...capabilitiesWithout(state, event.data.capability), event.data.capability],
      }
    case 'OrganizationCapabilityDisabled':
      return { ...state, capabilities: capabilitiesWithout(state, event.data.capability) }
    default:
      return state
  }
}

function newOrganization({
  organization_id,
  name,
  slug,
  created_at,
}: OrganizationCreated): OrganizationRow {
  const defaults = {
    secret_limit: null,
    publishable_limit: null,
    max_key_days: null,
    capabilities: [],
  }
  return {
    id: organization_id,
    name,
    slug,
    status: 'active',
    ...defaults,
    created_at,
    updated_at: created_at,
  }
}

function capabilitiesWithout({ capabilities }: OrganizationRow, capability: string): string[] {
  return capabilities.filter((name) => name !== capability)
}

function withStatus(
  state: OrganizationRow,
  status: OrganizationStatus,
  at: number,
): OrganizationRow {
  return { ...state, status, updated_at: at }
}

/** Returns the key's state after the event; undefined before the key is issued. A revoked key stays revoked. */
export function evolveKey(state: ApiKeyRow | undefined, event: DomainEvent): ApiKeyRow | undefined {
  if (event.type === 'ApiKeyIssued') return state ?? newKey(event.data)
  if (!state) return undefined
  switch (event.type) {
    case 'ApiKeyRenamed':
      return { ...state, name: event.data.name }
    case 'ApiKeyOriginsChanged':
      return { ...state, allowed_origins: event.data.allowed_origins }
    case 'ApiKeyScopesChanged':
      return { ...state, scopes: event.data.scopes }
    case 'ApiKeyExpiryChanged':
      return { ...state, expires_at: event.data.expires_at }
    case 'ApiKeyRotated': {
      const { rotated_at, grace_expires_at } = event.data
      const status = state.status === 'revoked' ? 'revoked' : 'rotating'
      return { ...state, status, rotated_at, grace_expires_at }
    }
    case 'ApiKeyRevoked': {
      if (state.status === 'revoked') return state
      const { revoked_at, reason } = event.data
      return { ...state, status: 'revoked', revoked_at, revoked_reason: reason }
    }
    default:
      return state
  }
}

function newKey({ key_id, issued_at, ...data }: ApiKeyIssued): ApiKeyRow {
  const times = {
    created_at: issued_at,
    rotated_at: null,
    revoked_at: null,
    revoked_reason: null,
    grace_expires_at: null,
  }
  return { id: key_id, ...data, status: 'active', ...times }
}
