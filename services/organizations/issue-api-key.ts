import type { Decision } from '../../infra/decide.ts'
import { defaultScopes, scopes as knownScopes } from '../../infra/http/auth.ts'
import { ApiError, type FieldIssue, invalidField } from '../../infra/http/errors.ts'
import { derivedId, type KeyId } from '../../infra/ids.ts'
import type { KeyCounts } from '../../projections/organizations/queries.ts'
import type { OrganizationRow } from '../../projections/organizations/rows.ts'
import type { ApiKeyIssued, ClientTarget, Environment, KeyType } from '../../schemas/events.ts'
import { checkedName } from './create-organization.ts'
import { normalOrigin } from './origins.ts'

/** What a caller may ask for; what it leaves out has a default (see `completeKeyRequest`). */
export interface KeyRequest {
  name: string
  environment: Environment
  type?: KeyType | undefined
  allowedOrigins?: string[] | undefined
  scopes?: string[] | undefined
  /** Default browser; publishable keys only. */
  clientTarget?: ClientTarget | undefined
}

/** A checked request, normalised. */
export type KeySpec = Pick<
  ApiKeyIssued,
  'name' | 'type' | 'environment' | 'client_target' | 'allowed_origins' | 'scopes'
>

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
}

const maxActiveKeys = 100
// As many recipients as a sealed token can have.
const maxSecretKeys = 256
const maxOrigins = 50

/**
 * The request with its defaults: a name alone makes a secret key with the narrow scopes, allowed origins without a
 * type make a publishable key. 422 naming the field that does not fit.
 */
export function completeKeyRequest(request: KeyRequest): KeySpec {
  const type = request.type ?? (request.allowedOrigins || request.clientTarget ? 'publishable' : 'secret')
  const name = checkedName(request.name, { max: 100, parameterSet })
  const base = { name, type, environment: request.environment }
  if (type === 'publishable') return { ...base, scopes: null, ...publishableParts(request) }
  return { ...base, client_target: 'browser', allowed_origins: null, scopes: secretScopes(request) }
}

const parameterSet = 'api_key_create'

function invalid(field: FieldIssue): ApiError {
  return invalidField(field, { parameter_set: parameterSet })
}

function publishableParts(request: KeyRequest): Pick<KeySpec, 'client_target' | 'allowed_origins'> {
  const { environment, allowedOrigins = [], clientTarget = 'browser' } = request
  if (request.scopes) throw invalid({ name: 'scopes', issue: 'not_allowed', expected: 'secret keys only' })
  if (clientTarget !== 'browser' && allowedOrigins.length > 0) {
    throw invalid({ name: 'allowed_origins', issue: 'not_allowed', expected: 'browser keys only' })
  }
  return { client_target: clientTarget, allowed_origins: checkedOrigins(allowedOrigins, environment) }
}

/** The origins as stored, each once; 422 naming the first that cannot be one. */
export function checkedOrigins(origins: string[], environment: Environment): string[] {
  if (origins.length > maxOrigins) {
    throw invalid({ name: 'allowed_origins', issue: 'too_many', expected: `at most ${maxOrigins}` })
  }
  const normal = origins.map((text, i) => {
    const origin = normalOrigin(text, environment)
    if (origin) return origin
    const expected = environment === 'test' ? 'an http or https origin' : 'an https origin or https://*.host'
    throw invalid({ name: `allowed_origins[${i}]`, issue: 'invalid', expected, received: text })
  })
  return [...new Set(normal)]
}

function secretScopes(request: KeyRequest): string[] {
  const { type, scopes, allowedOrigins, clientTarget } = request
  if (allowedOrigins) {
    throw invalid({ name: 'allowed_origins', issue: 'not_allowed', expected: 'publishable keys only' })
  }
  if (clientTarget)
    throw invalid({ name: 'client_target', issue: 'not_allowed', expected: 'publishable keys only' })
  if (scopes) return checkedScopes(scopes)
  if (type === undefined) return [...defaultScopes]
  throw invalid({ name: 'scopes', issue: 'required', expected: 'at least one scope' })
}

/** The scopes, each once; 422 when there is none or one is unknown. */
export function checkedScopes(scopes: string[]): string[] {
  if (scopes.length === 0)
    throw invalid({ name: 'scopes', issue: 'required', expected: 'at least one scope' })
  const known: readonly string[] = knownScopes
  const unknown = scopes.findIndex((scope) => !known.includes(scope))
  if (unknown < 0) return [...new Set(scopes)]
  throw invalidField(
    { name: `scopes[${unknown}]`, issue: 'unknown', received: scopes[unknown] ?? null },
    { parameter_set: parameterSet, allowed_values: [...known] },
  )
}

/** A new key; 404 without the organization, 403 when it is not active, 409 when it has as many as it can. */
export function issueApiKey({ organization, counts }: IssueState, command: IssueApiKey): Decision[] {
  const { organizationId, keyId, spec, material, now } = command
  if (!organization) throw new ApiError('request.not_found')
  if (organization.status !== 'active') throw new ApiError('auth.organization_inactive')
  if (counts.active >= maxActiveKeys) throw tooMany(`An organization can have ${maxActiveKeys} active keys.`)
  if (spec.type === 'secret' && counts.secret[spec.environment] >= maxSecretKeys) {
    throw tooMany(`An organization can have ${maxSecretKeys} secret keys in use in one environment.`)
  }
  const data: ApiKeyIssued = {
    organization_id: organizationId,
    key_id: keyId,
    ...spec,
    ...material,
    replaces_key_id: null,
    issued_at: now,
  }
  const eventId = derivedId('evt', keyId, 'issued')
  const meta = { eventId, time: now, organizationId, environment: spec.environment }
  return [{ event: { type: 'ApiKeyIssued', data }, meta }]
}

function tooMany(message: string): ApiError {
  return new ApiError('request.conflict', { message, details: { next_action: 'contact_support' } })
}
