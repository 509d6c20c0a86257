import { ApiError } from '../../infra/errors/errors.ts'
import type { Decision } from '../../infra/event-store/decide.ts'
import { decided } from '../../infra/event-store/decided.ts'
import { derivedId, type KeyId } from '../../infra/ids.ts'
import { type KeyCounts, organizationFor } from '../../projections/organizations/queries.ts'
import type { ApiKeyRow, OrganizationRow } from '../../projections/organizations/tables.ts'
import type { ApiKeyIssued, Environment } from '../../schemas/events.ts'
import type { KeySpec } from './key-request.ts'

/** What is stored of the generated key; the key itself is not part of any command. */
export type KeyMaterial = Pick<
  ApiKeyIssued,
  'lookup_hash' | 'secret_hash_sealed' | 'key_preview' | 'display_key'
>

export interface IssueApiKey {
  organizationId: string
  keyId: KeyId
  spec: KeySpec
  material: KeyMaterial
  /** Epoch milliseconds. */
  now: number
}

export interface IssueState {
  organization: OrganizationRow | undefined
  counts: KeyCounts
  /** The key with the id of the command. */
  existing: ApiKeyRow | undefined
}

const maxActiveKeys = 100
// As many recipients as a sealed token can have.
const maxSecretKeys = 256

/**
 * A new key; 404 without the organization, 403 when it is not active, 409 when it has as many as it can. No event
 * when the key is there already: the command is repeated.
 */
export function issueApiKey(
  { organization, counts, existing }: IssueState,
  command: IssueApiKey,
): Decision[] {
  // Also for the operator: a key of an organization that is not active would not work.
  organizationFor(organization, 'key')
  if (existing) return []
  if (counts.active >= maxActiveKeys) throw tooMany(`An organization can have ${maxActiveKeys} active keys.`)
  refuseManySecretKeys(counts, command.spec)
  return [issued(command, null)]
}

/** 409 when the organization has as many secret keys in use in the environment as a sealed token has recipients. */
export function refuseManySecretKeys(
  { secret }: KeyCounts,
  { type, environment }: { type: ApiKeyIssued['type']; environment: Environment },
): void {
  if (type !== 'secret' || secret[environment] < maxSecretKeys) return
  throw tooMany(`An organization can have ${maxSecretKeys} secret keys in use in one environment.`)
}

/** The event of a new key, which replaces another one when a rotation makes it. */
export function issued(
  { organizationId, keyId, spec, material, now }: IssueApiKey,
  replacesKeyId: string | null,
): Decision {
  const data: ApiKeyIssued = {
    organization_id: organizationId,
    key_id: keyId,
    ...spec,
    ...material,
    replaces_key_id: replacesKeyId,
    issued_at: now,
  }
  const eventId = derivedId('evt', keyId, 'issued')
  const { environment } = spec
  return decided({ type: 'ApiKeyIssued', data }, { organizationId, environment, eventId, now })
}

function tooMany(message: string): ApiError {
  return new ApiError('request.conflict', { message, details: { next_action: 'contact_support' } })
}
